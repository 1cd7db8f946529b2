// The pages that users see, in both languages, by day and by night, on a phone and on a desk: nothing for axe to find, nothing
// beyond the edge at 400 % zoom, everything there in the user's own colours. And what their scripts do.
// SCREENSHOTS=folder makes pictures of them.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { createAxe, type FindFaults } from '../kit/axe.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { type Gateway, openGateway, type Scene, setUp, wholeFile } from '../kit/set-up.ts'

const LANGUAGES = ['zh-CN', 'en'] as const
const SCHEMES = ['light', 'dark'] as const
const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 900 } } as const
/** 1280 CSS pixels at 400 %. */
const ZOOMED = { width: 320, height: 256 }

const PRESETS = ['github', 'google', 'entra', 'feishu', 'dingtalk', 'wecom']
const CONFIG = {
  rules: [
    { path: '/secret', roles: ['developer'] },
    { path: '/office', roles: ['*'], networks: ['10.0.0.0/8'] },
    { path: '/night', roles: ['*'], hours: { from: '01:00', to: '01:01', zone: 'Asia/Shanghai' } },
    { path: '/api', roles: ['*'], keys: 'personal' as const },
  ],
}

interface Stop {
  readonly name: string
  readonly isUser?: boolean
  readonly url: () => string
}

let browser: Browser
let findFaults: FindFaults
let scene: Scene
let several: Gateway
let signedIn: Awaited<ReturnType<BrowserContext['storageState']>>

const STOPS: readonly Stop[] = [
  { name: 'login', url: () => `${scene.url}/login` },
  { name: 'login-wanted', url: () => `${scene.url}/reports/2026` },
  { name: 'login-error', url: () => `${scene.url}/login?error=access_denied` },
  { name: 'login-several', url: () => `${several.url}/login` },
  { name: 'not-found', isUser: true, url: () => `${scene.url}/_menshen/nowhere` },
  { name: 'account', isUser: true, url: () => `${scene.url}/_menshen/account` },
  { name: 'account-not-me', isUser: true, url: () => `${scene.url}/_menshen/account#not-me` },
  { name: 'refused', isUser: true, url: () => `${scene.url}/secret` },
  { name: 'outside-network', isUser: true, url: () => `${scene.url}/office` },
  { name: 'outside-hours', isUser: true, url: () => `${scene.url}/night` },
  { name: 'bad-gateway', isUser: true, url: () => `${scene.url}/report` },
  { name: 'sign-out-question', isUser: true, url: () => `${scene.url}/logout?ask` },
]

const whole = wholeFile()

before(async () => {
  browser = await startBrowser()
  findFaults = await createAxe()
  scene = await setUp(whole, {
    env: { SUPPORT_CONTACT: 'helpdesk@example.com' },
    config: CONFIG,
    now: Date.now(),
    answer: (_, response) => response.destroy(),
  })
  const client = { clientId: 'x', clientSecret: 'y' }
  const extra = { entra: { tenant: 'common' }, wecom: { agent: '1' } } as Record<string, Record<string, string>>
  several = await openGateway(
    whole,
    {},
    {
      config: {
        providers: Object.fromEntries(
          PRESETS.map(preset => [preset, { preset, ...client, ...(extra[preset] && { vars: extra[preset] }) }]),
        ),
      },
    },
  )
  signedIn = await signInTwice()
})

after(() => browser?.close())

async function signInTwice() {
  const other = await scene.user('zhangsan', { nickname: '张三' })
  await other.post('/_menshen/account/keys', { name: 'nightly', days: '30' }, { headers: { origin: scene.url } })
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${scene.url}/login`)
  await page.locator('#sign-in button').click()
  await page.waitForURL(`${scene.url}/`)
  const state = await context.storageState()
  await context.close()
  return state
}

async function openContext(
  t: TestContext,
  lang: string,
  options: Parameters<Browser['newContext']>[0] = {},
  isUser = false,
) {
  const context = await browser.newContext({ ...options, ...(isUser && { storageState: signedIn }) })
  t.after(() => context.close())
  await context.addCookies(
    [scene.url, several.url].map(url => ({ name: 'menshen_language', value: lang, url, httpOnly: true })),
  )
  return context
}

for (const lang of LANGUAGES)
  test(`axe-core finds no fault on any page in ${lang}, in light and dark mode, on a phone and a desktop`, async () => {
    assert.deepEqual((await seenIn(lang)).faults, [])
  })

test('at 400 % zoom, no page scrolls sideways', async () => {
  for (const lang of LANGUAGES) assert.deepEqual((await seenIn(lang)).tooWide, [])
})

test('with forced colours, buttons have borders and the icons of notices are visible', async () => {
  for (const lang of LANGUAGES) assert.deepEqual((await seenIn(lang)).inForcedColours, [])
})

test('with reduced motion, no page has animations or transitions', async () => {
  for (const lang of LANGUAGES) assert.deepEqual((await seenIn(lang)).moving, [])
})

test('the question before a sign-out of devices opens by keyboard, and closes by Escape, restoring the focus, or by a click', async t => {
  const page = await (await openContext(t, 'en', {}, true)).newPage()
  await page.goto(`${scene.url}/_menshen/account`)
  const opener = page.locator('summary', { hasText: 'Sign out all other devices' })
  const question = page.getByText('These devices will be signed out. You’ll have to sign in on them again:')
  await opener.focus()
  await page.keyboard.press('Enter')
  await question.waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Escape')
  await question.waitFor({ state: 'hidden' })
  assert.ok(await opener.evaluate(element => element === document.activeElement))
  await opener.click()
  await question.waitFor()
  await page.getByRole('heading', { level: 1 }).click()
  await question.waitFor({ state: 'hidden' })
})

test('the page for an unavailable application retries after a countdown, until a click or the fifth retry stops it', async t => {
  const context = await openContext(t, 'en', {}, true)
  const page = await context.newPage()
  await page.clock.install({ time: Date.now() })
  await page.goto(`${scene.url}/report#part`)
  const timer = page.getByRole('timer')
  const seconds = async () => Number(/^Trying again in (\d+) s$/.exec((await timer.textContent()) ?? '')?.[1])
  let before = 0
  for (let tries = 0; tries < 5; tries++) {
    await timer.waitFor()
    const left = await seconds()
    assert.ok(left > before && left <= 72, `${left} after ${before}`)
    before = Math.min(left, 59)
    const loaded = page.waitForEvent('load')
    await page.clock.runFor(left * 1000)
    await loaded
  }
  await page.getByText('It still doesn’t work after several tries.').waitFor()
  assert.equal(new URL(page.url()).hash, '#part')

  await page.goto(`${scene.url}/other`)
  await timer.waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Automatic retries are stopped.').waitFor()
  let asked = 0
  page.on('request', () => asked++)
  await page.clock.runFor(120_000)
  assert.equal(asked, 0)

  await page.goto(`${scene.url}/third`)
  await timer.waitFor()
  await page.locator('.reference code').click()
  await page.getByText('Automatic retries are stopped.').waitFor()
})

test('a click copies the details of an error, without the query of the address', async t => {
  const { page, problems } = await openPage(t, browser, { permissions: ['clipboard-read', 'clipboard-write'] })
  await page.goto(`${scene.url}/login?error=access_denied&secret=1`)
  const reference = await page.locator('.reference code').innerText()
  await page.getByRole('button', { name: '复制详细信息' }).click()
  await page.getByRole('button', { name: '已复制' }).waitFor()
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split('\n')
  assert.deepEqual(lines.slice(1, 4), ['错误代码：access_denied', `请求编号：${reference}`, `${scene.url}/login`])
  assert.match(lines[4] ?? '', /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.deepEqual(problems, [])
})

/** Each page is loaded once in a language, and tested there in every variant. */
const walks = new Map<string, ReturnType<typeof walkIn>>()
function seenIn(lang: string) {
  const walk = walks.get(lang) ?? walkIn(lang)
  walks.set(lang, walk)
  return walk
}

async function walkIn(lang: string) {
  const [faults, tooWide, inForcedColours, moving]: [string[], string[], string[], string[]] = [[], [], [], []]
  for (const isUser of [false, true]) {
    const page = await (await openContext(whole, lang, { reducedMotion: 'reduce' }, isUser)).newPage()
    for (const stop of STOPS.filter(stop => Boolean(stop.isUser) === isUser)) {
      await page.setViewportSize(SIZES.desk)
      await page.goto(stop.url())
      assert.equal(await page.locator('html').getAttribute('lang'), lang, stop.name)
      await page.emulateMedia({ forcedColors: 'active' })
      await picture(page, `${stop.name}-${lang}-forced-colours`)
      for (const fault of await page.evaluate(faultsInForcedColours))
        inForcedColours.push(`${stop.name}, ${lang}: ${fault}`)
      await page.emulateMedia({ forcedColors: 'none' })
      await openQuestions(page)
      for (const element of await page.evaluate(movingElements)) moving.push(`${stop.name}, ${lang}: ${element}`)
      for (const [size, viewport] of Object.entries(SIZES))
        for (const colorScheme of SCHEMES) {
          await page.setViewportSize(viewport)
          for (const fault of await findFaults(page, colorScheme))
            faults.push(`${stop.name}, ${size}, ${colorScheme}: ${fault}`)
          await picture(page, `${stop.name}-${lang}-${size}-${colorScheme}`)
        }
      await page.setViewportSize(ZOOMED)
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      if (width > ZOOMED.width) tooWide.push(`${stop.name}, ${lang}: ${width} px`)
    }
  }
  return { faults, tooWide, inForcedColours, moving }
}

async function openQuestions(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const question of document.querySelectorAll('details')) question.open = true
  })
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

// What follows runs in the page.

function movingElements(): string[] {
  return [...document.querySelectorAll('*')]
    .filter(element => {
      const { transitionDuration, animationName } = getComputedStyle(element)
      return animationName !== 'none' || transitionDuration.split(', ').some(time => Number.parseFloat(time) > 0)
    })
    .map(element => element.outerHTML)
}

function faultsInForcedColours(): string[] {
  if (!matchMedia('(forced-colors: active)').matches) return ['the colours are not those of the user']
  const faults: string[] = []
  const canvas = getComputedStyle(document.body).backgroundColor
  for (const button of document.querySelectorAll<HTMLElement>('.button')) {
    const { borderTopWidth, borderTopColor } = getComputedStyle(button)
    if (button.checkVisibility() && (Number.parseFloat(borderTopWidth) < 1 || borderTopColor === canvas))
      faults.push(`${button.innerText} has no edge`)
  }
  for (const notice of document.querySelectorAll('.notice.bad, .notice.warn, .notice.good'))
    if (getComputedStyle(notice, '::before').backgroundColor === canvas) faults.push('a sign cannot be seen')
  return faults
}
