// The portal in a real browser: by mouse, by keyboard, by ear, on a phone, by night. SCREENSHOTS=folder makes pictures of it.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import type { Config } from '../../src/index.ts'
import { createAxe } from '../kit/axe.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { startUpstream } from '../kit/upstream.ts'

const LANGUAGES = ['zh-CN', 'en'] as const
const SCHEMES = ['light', 'dark'] as const
const DESK = { viewport: { width: 1280, height: 800 } }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const LEAST_TARGET_PX = 44

/** As organisations have them. */
const APPLICATIONS: readonly [title: string, description?: string][] = [
  ['企业邮箱', '收发邮件，管理日程和通讯录'],
  ['知识库 Wiki', '制度、流程和团队笔记'],
  ['Grafana', 'Dashboards for services and business figures'],
  ['财务报销', '差旅和日常费用的报销与审批'],
  ['GitLab', '代码托管、合并请求和流水线'],
  ['人事系统'],
  ['Jenkins', '持续集成'],
  ['采购平台', '采购申请、比价和合同'],
  ['Nextcloud', 'Files, shared folders and photos'],
  ['考勤打卡', '请假、加班和外勤'],
  ['Kibana', 'Search the logs of all services'],
  ['会议室预订'],
]
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><rect width="48" height="48" rx="11" fill="#0b5d4a"/><path d="M13 33V19l11-6 11 6v14H27v-8h-6v8z" fill="#fff"/></svg>`

/** Without it, there would be no portal for them. */
const NOT_FOR_THEM = { 'none.test': { rules: [{ path: '/', users: ['lisi'] }] } }

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

/** A portal with this many applications, the last two of them not available now, and one that is below the portal itself. */
async function openPortal(t: TestContext, count: number, more: NonNullable<Config['hosts']> = {}) {
  const app = await startUpstream(t, ({ headers }, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<title>${headers.host}</title><body>the application</body>`)
  })
  const icon = join(tempFolder(t), 'icon.svg')
  writeFileSync(icon, ICON)
  const port = await freePort()
  const away = [
    { hours: { days: ['sat'], from: '03:00', to: '03:01', zone: 'Asia/Shanghai' } },
    { networks: ['10.0.0.0/8'] },
  ] as const
  const hosts = Object.fromEntries(
    Array.from({ length: Math.max(0, count - 1) }, (_, n) => {
      const [name = '', description] = APPLICATIONS[n % APPLICATIONS.length] ?? []
      const title = n < APPLICATIONS.length ? name : `${name} ${Math.floor(n / APPLICATIONS.length) + 1}`
      const condition = count > 5 ? away[count - 2 - n] : undefined
      const entry = {
        upstream: app.url,
        title,
        ...(description !== undefined && { description }),
        ...(n % 4 === 1 && { icon }),
        ...(condition && { rules: [{ path: '/', roles: ['*' as const], ...condition }] }),
      }
      return [`app${n}.test:${port}`, entry]
    }),
  )
  const upstreams = { '/reports': { url: app.url, title: '经营报表', description: '销售、库存和现金流' } }
  const origin = `http://portal.test:${port}`
  const scene = await setUp(t, {
    application: false,
    config: { ...(count > 0 && { upstreams }), hosts: { ...hosts, ...more } },
    env: { BASE_URL: origin, PORT: String(port), APP_NAME: '远山科技', SUPPORT_CONTACT: 'it@example.com' },
    now: Date.now(),
  })
  const callback = (user: object) => `${origin}/callback?code=${scene.provider.codeFor(user)}&state=abc_idp`

  async function open(options: BrowserContextOptions & { lang?: string; user?: object } = {}) {
    const { lang = 'zh-CN', user = { username: 'zhangsan', nickname: '张三' }, ...rest } = options
    const { page, problems } = await openPage(t, browser, { ...DESK, reducedMotion: 'reduce', ...rest })
    await page.context().addCookies([{ name: 'menshen_language', value: lang, url: origin }])
    await page.goto(callback(user))
    assert.equal(page.url(), `${origin}/`)
    return { page, problems }
  }
  return { ...scene, origin, port, app, open }
}

test('one click opens an application at any host, without a second sign-in, and Back leads to the portal', async t => {
  const { open, origin, port, provider } = await openPortal(t, 3)
  const { page, problems } = await open()
  const calls = provider.calls.length
  for (const [name, address] of [
    ['企业邮箱', `http://app0.test:${port}/`],
    ['知识库 Wiki', `http://app1.test:${port}/`],
    ['经营报表', `${origin}/reports`],
  ] as const) {
    await page.getByRole('link', { name }).click()
    await page.waitForURL(address)
    assert.equal(await page.innerText('body'), 'the application')
    await page.goBack()
    await page.waitForURL(`${origin}/`)
  }
  assert.equal(provider.calls.length, calls, 'the provider was not asked again')
  assert.deepEqual(problems, [])
})

test('by keyboard, Ctrl+K or ⌘K focuses the filter, Escape clears it, Enter opens the only match, and the number of matches is shown', async t => {
  const { open, origin, port } = await openPortal(t, 12)
  const { page, problems } = await open({ lang: 'en' })
  const status = page.getByRole('status')
  const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent?.trim())
  const shown = () => page.locator('.applications > li:visible').count()
  assert.equal(await status.innerText(), '12 applications')
  await page.keyboard.press('Meta+k')
  assert.equal(await focused(), 'filter')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  assert.equal(await focused(), 'filter')
  assert.equal(await page.inputValue('#filter'), '', 'the key itself is not typed in')
  await page.keyboard.type('GIT lab')
  assert.equal(await shown(), 1)
  assert.equal(await status.innerText(), 'Showing 1 of 12 applications')
  await page.keyboard.press('Escape')
  assert.equal(await page.inputValue('#filter'), '')
  assert.equal(await shown(), 12)
  assert.equal(await status.innerText(), '12 applications')
  await page.keyboard.type('zzz')
  assert.equal(await status.innerText(), 'Showing 0 of 12 applications')
  assert.ok(await page.getByText('No applications match your filter.').isVisible())
  await page.keyboard.press('Enter')
  assert.equal(page.url(), `${origin}/`)
  await page.keyboard.press('Escape')
  await page.keyboard.type('files')
  await page.keyboard.press('Enter')
  await page.waitForURL(`http://app8.test:${port}/`)
  await page.goBack()
  await page.waitForURL(`${origin}/`)

  await page.locator('#filter').fill('app')
  await page.keyboard.press('Enter')
  assert.match(String(await focused()), /企业邮箱/, 'of several matches the first has the focus')
  await page.keyboard.press('Enter')
  await page.waitForURL(`http://app0.test:${port}/`)
  assert.deepEqual(problems, [])
})

test('no single character moves the focus to the filter, because programs for dictation type characters anywhere', async t => {
  const { open } = await openPortal(t, 12)
  const { page } = await open()
  for (const key of ['/', 'k', 'f']) {
    await page.keyboard.press(key)
    assert.notEqual(await page.evaluate(() => document.activeElement?.id), 'filter', key)
  }
})

test('while Chinese is composed with an input method, nothing is filtered until the characters are entered', async t => {
  const { open, origin } = await openPortal(t, 12)
  const { page } = await open()
  const shown = () => page.locator('.applications > li:visible').count()
  const devtools = await page.context().newCDPSession(page)
  await page.keyboard.press('Control+k')
  await devtools.send('Input.imeSetComposition', { text: 'bao xiao', selectionStart: 8, selectionEnd: 8 })
  assert.equal(await page.inputValue('#filter'), 'bao xiao')
  assert.equal(await shown(), 12)
  await devtools.send('Input.insertText', { text: '报销' })
  assert.equal(await page.inputValue('#filter'), '报销')
  assert.equal(await shown(), 1)
  assert.equal(page.url(), `${origin}/`)
})

test('Tab reaches every control of the portal once, in page order, with a visible focus', async t => {
  const { open } = await openPortal(t, 10)
  const { page } = await open({ user: { username: 'admin', nickname: '管理员' } })
  const names: string[] = []
  for (let n = 0; n < 40; n++) {
    await page.keyboard.press('Tab')
    const { name, ring } = await page.evaluate(() => {
      const element = document.activeElement
      if (!(element instanceof HTMLElement) || element === document.body) return { name: '', ring: 0 }
      const { outlineStyle, outlineWidth } = getComputedStyle(element)
      const name = element.ariaLabel ?? element.querySelector('strong')?.textContent ?? element.textContent ?? ''
      return { name: name.trim(), ring: outlineStyle === 'none' ? 0 : Number.parseFloat(outlineWidth) }
    })
    if (name === '') break
    assert.ok(ring >= 2, `${name} has a ring of ${ring} px`)
    names.push(name)
  }
  const titles = await page.locator('.applications strong').allInnerTexts()
  assert.deepEqual(names, ['跳到正文', '控制台', '我的账号：管理员', '退出登录', '筛选应用', ...titles, 'English'])
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'content', 'the first Tab skips to the content')
})

test('axe-core finds no fault in the portal in any language, colour scheme or screen size, and nothing scrolls sideways', async t => {
  const findFaults = await createAxe()
  const found: string[] = []
  for (const count of [0, 1, 12]) {
    const endless = { upstream: 'http://127.0.0.1:9', title: 'W'.repeat(100), description: '部'.repeat(300) }
    const { open } = await openPortal(t, count, count === 12 ? { 'endless.test': endless } : NOT_FOR_THEM)
    for (const lang of LANGUAGES)
      for (const device of [DESK, PHONE]) {
        const user = { username: count === 12 ? 'admin' : 'zhangsan', nickname: '张三' }
        const { page } = await open({ lang, user, ...device })
        for (const colorScheme of SCHEMES) {
          const where = `${count} applications, ${lang}, ${colorScheme}, ${device.viewport.width} px`
          for (const fault of await findFaults(page, colorScheme)) found.push(`${where}: ${fault}`)
        }
        for (const width of [device.viewport.width, 320, 256]) {
          await page.setViewportSize({ ...device.viewport, width })
          const { contentWidth, small } = await page.evaluate(measure, LEAST_TARGET_PX)
          if (contentWidth > width) found.push(`${count} applications, ${lang}: ${contentWidth} px wide on ${width} px`)
          for (const name of small) found.push(`${lang}, ${width} px: ${name} is hard to hit`)
        }
        assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1)
        assert.equal(await page.getByRole('main').count(), 1)
        await page.context().close()
      }
  }
  assert.deepEqual(found, [])
})

test('with forced colours every tile keeps its border and its letter, and with reduced motion tiles do not move', async t => {
  const { open } = await openPortal(t, 10)
  const { page } = await open({ forcedColors: 'active' })
  const borders = await page
    .locator('.applications a, #filter')
    .evaluateAll(all => all.map(element => getComputedStyle(element).borderTopWidth))
  assert.deepEqual(new Set(borders), new Set(['1px']))
  const letters = await page
    .locator('.applications svg text')
    .evaluateAll(all => all.map(one => getComputedStyle(one).fill))
  assert.ok(letters.length > 0)
  assert.deepEqual(new Set(letters), new Set(['rgb(255, 255, 255)']))
  const tile = page.locator('.applications a').first()
  await tile.hover()
  const moved = await tile.evaluate(element => [
    getComputedStyle(element).translate,
    getComputedStyle(element).transitionDuration,
  ])
  assert.deepEqual(moved, ['none', '0s'])
})

test('without scripts, the portal shows all applications, and Enter filters them', async t => {
  const { open, origin } = await openPortal(t, 12)
  const { page, problems } = await open({ javaScriptEnabled: false })
  assert.equal(await page.locator('.applications > li:visible').count(), 12)
  await page.locator('#filter').fill('grafana')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${origin}/_menshen/portal?q=grafana`)
  assert.deepEqual(await page.locator('.applications > li:visible strong').allInnerTexts(), ['Grafana'])
  assert.equal(await page.getByRole('status').innerText(), '显示 1 个，共 12 个应用')
  assert.deepEqual(problems, [])
})

const pictures = process.env.SCREENSHOTS
if (pictures)
  test('pictures of the portal are taken', async t => {
    for (const count of [0, 1, 3, 12, 40]) {
      const { open } = await openPortal(t, count, count === 0 ? NOT_FOR_THEM : {})
      for (const lang of LANGUAGES)
        for (const colorScheme of SCHEMES)
          for (const [device, options] of Object.entries({ desk: DESK, phone: PHONE })) {
            const { page } = await open({
              lang,
              colorScheme,
              deviceScaleFactor: device === 'phone' ? 2 : 1,
              ...options,
            })
            await page.screenshot({ path: join(pictures, `${count}-${lang}-${colorScheme}-${device}.png`) })
            await page.context().close()
          }
    }
    const { open } = await openPortal(t, 40)
    const { page } = await open({
      viewport: { width: 1920, height: 1080 },
      user: { username: 'admin', nickname: '管理员' },
    })
    await page.screenshot({ path: join(pictures, '40-wide-developer.png') })
    await page.locator('#filter').fill('报')
    await page.keyboard.press('Enter')
    await page.screenshot({ path: join(pictures, '40-wide-filtered.png') })
    await page.locator('#filter').fill('zzz')
    await page.screenshot({ path: join(pictures, '40-wide-nothing.png') })
    const developer = { username: 'admin', nickname: '管理员' }
    const narrow = { ...PHONE, viewport: { width: 320, height: 640 }, deviceScaleFactor: 2 }
    const { page: phone } = await open({ ...narrow, user: developer })
    await phone.screenshot({ path: join(pictures, '40-narrow-developer.png') })
    const { page: forced } = await open({ forcedColors: 'active', colorScheme: 'dark' })
    await forced.locator('.applications a').nth(1).focus()
    await forced.screenshot({ path: join(pictures, '40-forced-colors.png') })
  })

// What follows runs in the page, each function by itself.

function measure(least: number) {
  const small = [...document.querySelectorAll('main a, main input, .bar a:not(.skip), button')].filter(element => {
    const { width, height } = element.getBoundingClientRect()
    return !element.closest('[hidden], .support') && (width < least || height < least)
  })
  return {
    contentWidth: document.documentElement.scrollWidth,
    small: small.map(element => element.textContent?.trim() ?? ''),
  }
}
