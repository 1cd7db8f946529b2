// The console in a real browser: in both languages, by day and by night, on a phone and on a desk, enlarged, in the colours of
// the user, and without scripts.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { createAxe, type FindFaults } from '../kit/axe.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import type { Client } from '../kit/client.ts'
import { type GatewayAndProvider, setUp, wholeFile } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const CONSOLE = '/_menshen/console'
const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'
const PHONE_AGENT =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'
const DESK = { viewport: { width: 1280, height: 800 } }
const PHONE = { viewport: { width: 390, height: 720 }, isMobile: true, hasTouch: true }

const whole = wholeFile()
let browser: Browser
let findFaults: FindFaults
/** For tests that end no session. */
let shared: Opened

before(async () => {
  browser = await startBrowser()
  findFaults = await createAxe()
  shared = await openConsole(whole)
})

after(() => browser?.close())

interface Opened {
  readonly scene: GatewayAndProvider
  readonly admin: Client
  /** The addresses of all pages, with something on each. */
  readonly paths: Readonly<Record<string, string>>
}

/** Users with several sessions, a failure, a refusal, and a provider that has stopped. */
async function openConsole(t: Parameters<typeof setUp>[0]): Promise<Opened> {
  const rules = [
    { path: '/', roles: ['developer', 'common'] },
    { path: '/finance', roles: ['developer'], networks: ['10.0.0.0/8'] },
    { path: '/beta', roles: ['developer'], shadow: true },
  ]
  const env = { PAGE_LANGUAGE: 'auto', PROVIDER_NAME: 'Staff login', TRUSTED_PROXIES: '127.0.0.1' }
  const scene = await setUp(t, { env, config: { rules }, now: Date.now() })
  const { provider } = scene
  const signInAs = async (username: string, nickname: string, address: string, agent = WINDOWS) => {
    const client = scene.visitor()
    const headers = { 'user-agent': agent, 'x-forwarded-for': address }
    await client.get(`/callback?code=${provider.codeFor({ username, nickname })}&state=abc_idp`, { headers })
    scene.passSeconds(1)
    return client
  }
  await signInAs('lisi', '李四', '10.0.0.7')
  await signInAs('lisi', '李四', '2001:db8:85a3:8d3:1319:8a2e:370:7348', PHONE_AGENT)
  const maria = await signInAs('maria.garcia@subsidiary.example.com', 'María García', '10.0.0.8')
  await maria.get('/finance/2026/quarterly-report-of-the-whole-group')
  await maria.get('/beta')
  const admin = await signInAs('admin', 'Ann', '10.0.0.1')
  provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signInAs('wangwu', '', '10.0.0.9')
  await admin.get(`${CONSOLE}/health`)
  await until(async () => (await admin.get(`${CONSOLE}/audit.jsonl?event=sign_in_failed`)).text !== '')
  scene.passSeconds(10)
  const list = (await admin.get(`${CONSOLE}/sessions`)).text
  const keys = [...list.matchAll(/<input type="checkbox" name="(\w+)" value="([\w-]{43})"/g)]
  const [, , user, first, second] = keys.map(([, name, key]) => `${name}=${key}`)
  const paths = {
    overview: CONSOLE,
    sessions: `${CONSOLE}/sessions`,
    search: `${CONSOLE}/sessions?username=LISI`,
    confirmation: `${CONSOLE}/sessions/end?${user}&${first}&${second}`,
    session: `${CONSOLE}/session?key=${keys[1]?.[2]}`,
    audit: `${CONSOLE}/audit?range=1d`,
    rules: `${CONSOLE}/rules?path=/finance&role=common`,
    health: `${CONSOLE}/health`,
    settings: `${CONSOLE}/settings?changed=yes`,
  }
  return { scene, admin, paths }
}

async function openAs(
  t: Parameters<typeof setUp>[0],
  { scene, admin }: Opened,
  options: BrowserContextOptions,
): Promise<{ page: Page; problems: string[] }> {
  const opened = await openPage(t, browser, options)
  const value = admin.cookies.get('menshen_session') ?? ''
  await opened.page.context().addCookies([{ name: 'menshen_session', value, url: scene.url }])
  return opened
}

/** What opens on demand is part of the page. */
async function openEverything(page: Page, name: string): Promise<void> {
  if (name === 'overview') await page.locator('#plot-times canvas').waitFor()
  await page.evaluate(() => {
    for (const details of document.querySelectorAll<HTMLDetailsElement>('main details:not(.menu)')) details.open = true
  })
  if (name === 'audit') await page.locator('button[popovertarget]').first().click()
}

for (const locale of ['zh-CN', 'en'])
  for (const [size, options] of Object.entries({ desk: DESK, phone: PHONE }))
    test(`axe-core finds nothing in the console in ${locale} on a ${size}, by day or by night`, async t => {
      const { page, problems } = await openAs(t, shared, { ...options, locale, reducedMotion: 'reduce' })
      const found: string[] = []
      for (const [name, path] of Object.entries(shared.paths)) {
        await page.goto(shared.scene.url + path)
        assert.equal(await page.locator('html').getAttribute('lang'), locale)
        await openEverything(page, name)
        for (const colorScheme of ['light', 'dark'] as const)
          for (const fault of await findFaults(page, colorScheme)) found.push(`${name}, ${colorScheme}: ${fault}`)
      }
      assert.deepEqual(found, [])
      assert.deepEqual(problems, [])
    })

test('enlarged four times, and in the colours of the user, no page of the console scrolls sideways or hides a button', async t => {
  for (const locale of ['zh-CN', 'en']) {
    const viewport = { width: 320, height: 256 }
    const { page } = await openAs(t, shared, { viewport, locale, forcedColors: 'active', reducedMotion: 'reduce' })
    for (const [name, path] of Object.entries(shared.paths)) {
      await page.goto(shared.scene.url + path)
      if (name === 'overview') await page.locator('#plot-times canvas').waitFor()
      const { width, cut } = await page.evaluate(measure)
      assert.ok(width <= 320, `${name} in ${locale} is ${width} px wide`)
      assert.deepEqual(cut, [], `${name} in ${locale}`)
      assert.equal(await page.evaluate(() => document.getAnimations().length), 0)
    }
  }
})

test('no table of the console breaks a word in the middle, on a desk or on a phone', async t => {
  for (const options of [DESK, { viewport: { width: 1024, height: 800 } }, PHONE])
    for (const locale of ['zh-CN', 'en']) {
      const { page } = await openAs(t, shared, { ...options, locale })
      for (const name of ['sessions', 'audit', 'rules', 'health']) {
        await page.goto(shared.scene.url + shared.paths[name])
        assert.deepEqual(await page.evaluate(brokenWords), [], `${name}, ${locale}, ${options.viewport.width} px`)
      }
    }
})

test('legends are beside their plots, in the words of the page', async t => {
  for (const [locale, words] of [
    ['zh-CN', ['身份认证平台（中位数）', '存储（99 分位）', '失败：换取令牌失败']],
    ['en', ['Provider, median', 'Store, 99th percentile', 'Failed: the token exchange failed']],
  ] as const) {
    const { page } = await openAs(t, shared, { ...DESK, locale })
    await page.goto(shared.scene.url + CONSOLE)
    await page.locator('#plot-times canvas').waitFor()
    const text = (await page.locator('.u-legend').allInnerTexts()).join('\n')
    for (const word of words) assert.ok(text.includes(word), word)
    assert.doesNotMatch(text, /p50|p99|token_error/)
    for (const name of ['signIns', 'sessions', 'requests', 'times']) {
      const plot = await page.locator(`#plot-${name} .u-wrap`).boundingBox()
      const legend = await page.locator(`#plot-${name} .u-legend`).boundingBox()
      assert.ok(plot && legend && legend.x >= plot.x + plot.width - 1, name)
    }
  }
})

test('the banner and the figures with their trends are in sight before anything is scrolled', async t => {
  for (const options of [DESK, PHONE]) {
    const { page } = await openAs(t, shared, { ...options, locale: 'en' })
    await page.goto(shared.scene.url + CONSOLE)
    for (const selector of ['.banner.down', '.figures .spark', '.figures .trend']) {
      const box = await page.locator(selector).last().boundingBox()
      assert.ok(box && box.y + box.height < options.viewport.height, `${selector} ends at ${box && box.y + box.height}`)
    }
  }
})

test('advice that was dismissed stays away in this browser, until it says something else', async t => {
  const { page } = await openAs(t, shared, { ...DESK, locale: 'en' })
  const advice = page.locator('#advice details')
  await page.goto(shared.scene.url + CONSOLE)
  assert.equal(await advice.getAttribute('open'), null)
  await advice.locator('summary').click()
  const lines = advice.locator('li:visible')
  const count = await lines.count()
  assert.ok(count > 1)
  const first = await lines.first().locator('p').innerText()
  await lines.first().getByRole('button', { name: 'Dismiss' }).click()
  assert.equal(await lines.count(), count - 1)
  assert.equal(await advice.locator('summary .tag').innerText(), String(count - 1))
  await page.reload()
  await advice.locator('summary').click()
  assert.equal(await lines.count(), count - 1)
  assert.ok(!(await advice.innerText()).includes(first))
  // Advice with another content has another fingerprint.
  await page.evaluate(() => localStorage.setItem('menshen-dismissed-advice', JSON.stringify(['of former advice'])))
  await page.reload()
  await advice.locator('summary').click()
  assert.equal(await lines.count(), count)
  while ((await lines.count()) > 0) await lines.first().getByRole('button', { name: 'Dismiss' }).click()
  assert.ok(await advice.isHidden())
  await page.getByRole('button', { name: 'Show again' }).click()
  assert.ok(await advice.isVisible())
})

test('a filter hides rows as one types, and parts of the page without a row', async t => {
  const { page, problems } = await openAs(t, shared, { ...DESK, locale: 'en' })
  await page.goto(`${shared.scene.url}${CONSOLE}/settings`)
  const rows = page.locator('tbody tr:visible')
  const all = await rows.count()
  await page.getByLabel('Filter', { exact: true }).last().fill('session_max')
  assert.deepEqual(await page.locator('tbody tr:visible th > code').allInnerTexts(), ['SESSION_MAX_HOURS'])
  assert.equal(await page.locator('section[data-filtered]:visible').count(), 1)
  await page.getByLabel('Filter', { exact: true }).last().fill('no such setting')
  await page.getByText('Nothing matches.').waitFor()
  await page.getByLabel('Filter', { exact: true }).last().fill('')
  await page.getByLabel(/Changed only/).check()
  const changed = await rows.count()
  assert.ok(changed > 0 && changed < all)
  assert.equal(await page.locator('tbody tr:visible .changed').count(), changed)
  await page.goto(`${shared.scene.url}${CONSOLE}/rules`)
  await page.getByLabel('Filter', { exact: true }).last().fill('FINANCE')
  assert.deepEqual(await page.locator('[data-filtered] tbody tr:visible th > code').allInnerTexts(), ['/finance'])
  assert.deepEqual(problems, [])
})

for (const javaScriptEnabled of [true, false])
  test(`several sessions are chosen and ended, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async t => {
    const opened = await openConsole(t)
    const { page, problems } = await openAs(t, opened, { ...DESK, locale: 'en', javaScriptEnabled })
    await page.goto(`${opened.scene.url}${CONSOLE}/sessions`)
    await page.getByLabel('Select all sessions of lisi').check()
    await page.getByLabel(/^Select session: maria/).check()
    if (javaScriptEnabled) {
      // The two sessions of the user are included.
      assert.equal(await page.locator('tbody input[name=session]:checked').count(), 3)
      await page.getByText('2 selected').waitFor()
    }
    await page.getByRole('button', { name: 'End selected sessions' }).click()
    await page.getByRole('heading', { name: 'End the 2 selected items?' }).waitFor()
    const named = await page.locator('.choices').innerText()
    assert.match(named, /李四 lisi\s+All sessions and personal keys/)
    assert.match(named, /María García maria\.garcia@subsidiary\.example\.com\s+Chrome · Windows · 10\.0\.0\.8/)
    await page.getByRole('button', { name: 'End selected sessions' }).click()
    await page.getByText('Ended 3 sessions of 2 users.').waitFor()
    assert.deepEqual(await page.locator('.user code').allInnerTexts(), ['admin'])
    assert.deepEqual(problems, [])
  })

test('without scripts the drawer of an event opens and closes, and filters and ranges work', async t => {
  const { page } = await openAs(t, shared, { ...DESK, locale: 'en', javaScriptEnabled: false })
  await page.goto(`${shared.scene.url}${CONSOLE}/audit`)
  await page.getByRole('link', { name: 'Last 15 minutes' }).click()
  await page.waitForURL('**/audit?range=15m')
  const drawer = page.getByRole('dialog', { name: /Sign-in failed/ })
  await page
    .getByRole('row', { name: /Sign-in failed/ })
    .getByRole('button', { name: 'Details' })
    .click()
  assert.match(await drawer.innerText(), /Reason\s+the token exchange failed/)
  await drawer.getByRole('button', { name: 'Close' }).click()
  assert.ok(await drawer.isHidden())
  await page.goto(`${shared.scene.url}${CONSOLE}/settings`)
  await page.getByLabel(/Changed only/).check()
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.waitForURL('**/settings?filter=&changed=yes')
  assert.ok(await page.getByText('CLIENT_ID', { exact: true }).first().isVisible())
  assert.ok(await page.getByText('LOGIN_PATH', { exact: true }).first().isHidden())
})

// What follows runs in the page, each function by itself.

function measure() {
  const width = document.documentElement.scrollWidth
  const shown = [...document.querySelectorAll('main button, main a, main input:not([type=hidden])')].filter(element =>
    element.checkVisibility(),
  )
  const cut = shown.filter(element => element.getBoundingClientRect().right > innerWidth)
  return { width, cut: cut.map(element => element.outerHTML) }
}

/** Words of at most 24 characters that stand on two lines. Chinese sentences break anywhere, Chinese names do not. */
function brokenWords(): string[] {
  const broken: string[] = []
  for (const cell of document.querySelectorAll('main th, main td')) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement?.checkVisibility() || node.parentElement.closest('.unseen')) continue
      const words = new Intl.Segmenter('zh-CN', { granularity: 'word' }).segment(node.textContent ?? '')
      for (const { segment, index, isWordLike } of words) {
        // Parts of an address are not words.
        if (!isWordLike || !/\p{L}{3}|\p{Script=Han}/u.test(segment) || segment.length > 24) continue
        // A code without an end has to break somewhere.
        if (node.parentElement.matches('code') && (node.textContent ?? '').length > 24) continue
        if (/\p{Script=Han}/u.test(segment) && cell.matches('.long')) continue
        const range = document.createRange()
        range.setStart(node, index)
        range.setEnd(node, index + segment.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) broken.push(`${segment} in ${cell.textContent?.trim().slice(0, 60)}`)
      }
    }
  }
  return broken
}
