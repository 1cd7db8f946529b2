// What the pages look like to people: on a phone, by night, by keyboard, by ear.
// SCREENSHOTS=folder makes pictures of them as well.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { type ColorScheme, createAxe } from '../kit/axe.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { type Gateway, openGateway, wholeFile } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const SIGN_IN = '统一身份认证登录'
const LEAST_CONTRAST = 4.5
/** Of what is not text: the ring around the focus, the edge of a field. */
const LEAST_RING_CONTRAST = 3
const LEAST_EDGE_CONTRAST = 3
const LEAST_BUTTON_PX = 44
const DESK = { width: 1280, height: 800 }
const PHONE = { isMobile: true, hasTouch: true }
const ENDLESS = 'W'.repeat(120)

type Who = 'visitor' | 'common' | 'developer' | 'endless'
type State = NonNullable<BrowserContextOptions['storageState']>

interface Stop {
  name: string
  who: Who
  url: () => string
}

const whole = wholeFile()
let browser: Browser
/** On the embedded defaults; half configured; with names that have no end and a look of its own. */
let usual: Gateway
let incomplete: Gateway
let endless: Gateway
let providerUrl = ''
let endQuestion = ''
const states: Partial<Record<Who, State>> = {}

const STOPS: readonly Stop[] = [
  { name: 'login', who: 'visitor', url: () => `${usual.url}/login` },
  { name: 'login, signed in already', who: 'common', url: () => `${usual.url}/login` },
  { name: 'error', who: 'visitor', url: () => `${usual.url}/login?error=access_denied` },
  { name: 'unknown error', who: 'visitor', url: () => `${usual.url}/login?error=${ENDLESS}` },
  { name: 'settings missing', who: 'visitor', url: () => `${incomplete.url}/login?error=token_error` },
  { name: 'home', who: 'developer', url: () => `${usual.url}/` },
  { name: 'account', who: 'common', url: () => `${usual.url}/_menshen/account` },
  { name: 'console', who: 'developer', url: () => `${usual.url}/_menshen/console` },
  { name: 'console sessions', who: 'developer', url: () => `${usual.url}/_menshen/console/sessions` },
  { name: 'console, before an end', who: 'developer', url: () => endQuestion },
  {
    name: 'console session',
    who: 'developer',
    url: () => `${usual.url}/_menshen/console/session?key=${new URL(endQuestion).searchParams.get('session')}`,
  },
  { name: 'console settings', who: 'developer', url: () => `${usual.url}/_menshen/console/settings` },
  { name: 'console audit', who: 'developer', url: () => `${usual.url}/_menshen/console/audit` },
  { name: 'console rules', who: 'developer', url: () => `${usual.url}/_menshen/console/rules?path=/x&role=common` },
  {
    name: 'console, nobody found',
    who: 'developer',
    url: () => `${usual.url}/_menshen/console/sessions?username=nobody`,
  },
  { name: 'console health', who: 'developer', url: () => `${usual.url}/_menshen/console/health` },
  { name: '403', who: 'common', url: () => `${usual.url}/_menshen/console` },
  { name: '404', who: 'common', url: () => `${usual.url}/nowhere` },
  { name: 'login with a look of its own', who: 'visitor', url: () => `${endless.url}/login` },
  { name: 'home of a user with endless names', who: 'endless', url: () => `${endless.url}/` },
  { name: 'account of a user with endless names', who: 'endless', url: () => `${endless.url}/_menshen/account` },
  { name: 'console with endless names', who: 'endless', url: () => `${endless.url}/_menshen/console/sessions` },
  { name: 'provider', who: 'visitor', url: authorizeAddress },
  { name: 'panel of the provider', who: 'visitor', url: () => providerUrl },
]
const ours = STOPS.filter(({ name }) => !name.includes('provider'))

before(async () => {
  const DEV_PROVIDER_PORT = String(await freePort())
  providerUrl = `http://localhost:${DEV_PROVIDER_PORT}`
  const provider = await openScriptedProvider(whole, {
    user: { username: 'admin', nickname: ENDLESS, email: `${ENDLESS}@example.com`, ou_name: '部'.repeat(120) },
  })
  browser = await startBrowser()
  usual = await openGateway(whole, { DEV_PROVIDER_PORT }, { devProvider: true, hasRunningClock: true })
  incomplete = await openGateway(whole, { AUTH_URL: provider.url }, { hasRunningClock: true })
  const { env, config } = await ownLook()
  const settings = { ...provider.settings, ...env, APP_NAME: 'W'.repeat(60) }
  endless = await openGateway(whole, settings, { config, hasRunningClock: true })
  await signedInAs(usual.url, /zhangsan/)
  states.common = await signedInAs(usual.url, /zhangsan/)
  states.developer = await signedInAs(usual.url, /admin/)
  states.endless = await signedInAs(endless.url)
  endQuestion = await askedToEnd(states.developer)
})

after(() => browser?.close())

/** A wide mark, a colour that is hard to read, and more words than anybody needs. */
async function ownLook() {
  const LOGO_FILE = join(tempFolder(whole), 'logo.svg')
  const links = ['隐私政策', '使用帮助', ENDLESS.slice(0, 60), 'IT 服务台'].map(text => ({ text, href: '/help' }))
  const config = { loginPage: { note: '仅限本单位员工使用，所有访问都会被记录。'.repeat(5), links } }
  await writeFile(
    LOGO_FILE,
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 8"><path d="M0 0h40v8H0z"/></svg>',
  )
  return { env: { LOGO_FILE, ACCENT_COLOR: '#ffd400' }, config }
}

test('on a phone, no page scrolls sideways, and every button is at least 44 px high', async () => {
  const found: string[] = []
  const visit = createVisits({ ...PHONE, viewport: { width: 390, height: 720 } })
  for (const stop of STOPS) {
    const page = await visit(stop)
    for (const width of [390, 320]) {
      await resize(page, { width, height: 720 })
      const { contentWidth, buttons } = await page.evaluate(measure)
      if (contentWidth > width) found.push(`${stop.name} is ${contentWidth} px wide on a phone of ${width} px`)
      for (const { name, height } of ours.includes(stop) ? buttons : [])
        if (height < LEAST_BUTTON_PX) found.push(`${stop.name}: ${name} is ${height} px high`)
    }
  }
  assert.deepEqual(found, [])
})

test('no button or link of any page is cut off, on a phone, a tablet or a desktop', async () => {
  const found = (await seenOnDesk()).filter(({ stop }) => ours.includes(stop)).flatMap(({ cut }) => cut)
  assert.deepEqual(found, [])
})

test('text has enough contrast in light and dark mode, and the background of dark mode is dark', async () => {
  const found: string[] = []
  for (const { stop, light, dark } of await seenOnDesk()) {
    for (const [colorScheme, { texts }] of Object.entries({ light, dark })) {
      assert.ok(texts.length > 2, `${stop.name} has text`)
      for (const { text, ratio, colours } of texts)
        if (ratio < LEAST_CONTRAST) found.push(`${stop.name}, ${colorScheme}: ${text} ${ratio.toFixed(2)} (${colours})`)
    }
    assert.ok(light.paper > 0.7 && dark.paper < 0.1, `${stop.name}: ${light.paper}, ${dark.paper}`)
  }
  assert.deepEqual(found, [])
})

test('the borders of fields, tags and quiet buttons have enough contrast in light and dark mode', async () => {
  const found: string[] = []
  const seen = (await seenOnDesk()).filter(({ stop }) => ours.includes(stop))
  for (const { stop, light, dark } of seen)
    for (const [colorScheme, { edges }] of Object.entries({ light, dark }))
      for (const { text, ratio, colours } of edges)
        if (ratio < LEAST_EDGE_CONTRAST)
          found.push(`${stop.name}, ${colorScheme}: ${text} ${ratio.toFixed(2)} (${colours})`)
  assert.deepEqual(found, [])
  assert.ok(seen.some(({ light }) => light.edges.some(({ text }) => text.includes('INPUT'))))
})

test('contrast is measured as WCAG defines it', async t => {
  const { page } = await openPage(t, browser)
  await page.setContent(`<body style="background:#fff;color:#000">one<p style="color:#777">two
    <b style="background:#000;color:#fff;opacity:.5">three</b><i style="background:rgb(0 0 0 / 40%);color:#fff">four</i>`)
  const { texts, paper } = await page.evaluate(readContrasts)
  assert.equal(paper, 1)
  const ratios = Object.fromEntries(texts.map(({ text, ratio }) => [text, Number(ratio.toFixed(2))]))
  assert.deepEqual(ratios, { one: 21, two: 4.48, three: 3.98, four: 2.85 })
})

test('a user can sign in, use the console and sign out by keyboard alone, with a visible focus', async t => {
  const { page } = await openPage(t, browser)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.context().clearCookies()
    await page.goto(usual.url)
    await tabTo(page, SIGN_IN)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/oauth/authorize?*')
    await tabTo(page, 'admin')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${usual.url}/`)
    await tabTo(page, '控制台')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/_menshen/console')
    await tabTo(page, '会话')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/_menshen/console/sessions')
    await tabTo(page, '操作')
    await page.keyboard.press('Enter')
    await tabTo(page, '结束会话')
    await page.goto(usual.url)
    await tabTo(page, '退出登录')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/login')
  }
})

test('a menu of the console closes by Escape, which restores the focus, and by a click elsewhere', async () => {
  const page = await createVisits()({ name: '', who: 'developer', url: () => `${usual.url}/_menshen/console/sessions` })
  const menu = page.locator('details.menu').first()
  const opener = menu.locator('summary')
  const isOpen = (open: boolean) =>
    page.waitForFunction(open => document.querySelector('details.menu')?.hasAttribute('open') === open, open)
  await opener.focus()
  await page.keyboard.press('Enter')
  await isOpen(true)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Escape')
  await isOpen(false)
  assert.ok(await opener.evaluate(element => element === document.activeElement))
  await opener.click()
  await isOpen(true)
  await page.getByRole('heading', { level: 1 }).click()
  await isOpen(false)
})

test('for screen readers, every page has one h1, one main element, a title, a language and a name for every control', async () => {
  const titles = new Map<string, string>()
  for (const { stop, outline, mains, headings } of await seenOnDesk()) {
    const { faults, language, heading, title } = outline
    assert.deepEqual(faults, [], stop.name)
    assert.equal(language, 'zh-CN', stop.name)
    assert.notEqual(heading, '', stop.name)
    assert.match(title, /\S · \S/, stop.name)
    assert.equal(mains, 1, stop.name)
    assert.equal(headings, 1, stop.name)
    titles.set(stop.name, title)
  }
  const different = ['login', 'home', 'account', 'console', '403', '404'].map(name => titles.get(name))
  assert.equal(new Set(different).size, different.length)
})

test('axe-core finds no fault on any page, in light or dark mode', async () => {
  const found = (await seenOnDesk()).filter(({ stop }) => ours.includes(stop)).flatMap(({ faults }) => faults)
  assert.deepEqual(found, [])
})

test('errors have the alert role, and no other text of a page has it', async () => {
  const texts = (await seenOnDesk()).filter(({ stop, alerts }) => ours.includes(stop) && alerts.length > 0)
  const alerts = new Map(texts.map(({ stop, alerts }) => [stop.name, alerts.join('\n')]))
  assert.deepEqual([...alerts.keys()], ['error', 'unknown error', 'settings missing'])
  assert.match(alerts.get('unknown error') ?? '', /\bW{40}…/)
})

test('monospaced text on a Chinese page does not use a CJK font', async t => {
  const { page } = await openPage(t, browser)
  await page.goto(`${usual.url}/login?error=unheard_of`)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('DOM.enable')
  await devtools.send('CSS.enable')
  const { root } = await devtools.send('DOM.getDocument')
  const { nodeId } = await devtools.send('DOM.querySelector', { nodeId: root.nodeId, selector: '.reference code' })
  const { fonts } = await devtools.send('CSS.getPlatformFontsForNode', { nodeId })
  assert.ok(fonts.length > 0)
  for (const { familyName } of fonts) assert.doesNotMatch(familyName, /CJK/)
})

test('without scripts, an error page shows its reference and no button to copy it', async t => {
  const { page: plain } = await openPage(t, browser, { javaScriptEnabled: false })
  await plain.goto(`${usual.url}/_menshen/nowhere`)
  await plain.locator('.reference code').waitFor()
  assert.equal(await plain.getByRole('button', { name: '复制' }).count(), 0)
})

for (const javaScriptEnabled of [true, false])
  test(`a click changes the language of every page, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async t => {
    const { page, problems } = await openPage(t, browser, { javaScriptEnabled })
    await page.goto(`${usual.url}/reports/%E6%8A%A5%E8%A1%A8?q=1#part`)
    await page.getByText('登录后前往 /reports/报表', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'English' }).click()
    await page.getByText('You’ll continue to /reports/报表 after signing in', { exact: true }).waitFor()
    assert.equal(new URL(page.url()).hash, javaScriptEnabled ? '#part' : '')
    await page.getByRole('button', { name: 'Continue with SSO' }).click()
    await page.getByRole('heading', { name: 'Choose a user' }).waitFor()
    await page.getByRole('button', { name: '简体中文' }).click()
    await page.getByRole('heading', { name: '以谁的身份登录？' }).waitFor()
    await page.getByRole('button', { name: 'English' }).click()
    await page.getByRole('button', { name: /admin/ }).click()
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    assert.equal(page.url(), `${usual.url}/reports/%E6%8A%A5%E8%A1%A8?q=1${javaScriptEnabled ? '#part' : ''}`)
    await page.getByRole('button', { name: '简体中文' }).click()
    await page.getByRole('heading', { name: '页面不存在' }).waitFor()
    assert.deepEqual(problems, [])
  })

test('the home page shows developers the next steps with the lines of the docs, and shows other users no steps', async () => {
  const docs = await readFile(new URL('../../docs/first-steps.md', import.meta.url), 'utf8')
  const visit = createVisits()
  const home = (who: Who) => visit({ name: 'home', who, url: () => `${usual.url}/` })
  const page = await home('developer')
  await page.getByRole('heading', { name: '接下来' }).waitFor()
  const steps = await page.locator('.steps pre').allInnerTexts()
  assert.deepEqual(
    steps.map(step => /UPSTREAM|rules|PROVIDER/.exec(step)?.[0]),
    ['UPSTREAM', 'rules', 'PROVIDER'],
  )
  for (const line of steps.flatMap(step => step.split('\n'))) assert.ok(docs.includes(line), line)
  assert.ok((await page.locator('.steps').innerText()).includes(`${usual.url}/callback`))
  assert.equal(await (await home('common')).locator('.steps').count(), 0)
  const organisation = createVisits()
  assert.equal(
    await (await organisation({ name: 'home', who: 'endless', url: () => `${endless.url}/` }))
      .locator('.steps')
      .count(),
    0,
  )
})

test('an unknown error code is shown as text, even if it contains HTML', async t => {
  const { page, problems } = await openPage(t, browser)
  for (const code of [`"><img src=x onerror=alert(1)>`, `<script>alert(2)</script>&amp;'`]) {
    await page.goto(`${usual.url}/login?${new URLSearchParams({ error: `${code}\u202e` })}`)
    const shown = await page.getByRole('alert').innerText()
    assert.ok(shown.includes(code))
    assert.doesNotMatch(shown, /\u202e/)
  }
  assert.deepEqual(problems, [])
})

test('with settings missing, the login page names them and its button is disabled', async t => {
  const { page } = await openPage(t, browser)
  await page.goto(`${incomplete.url}/login`)
  assert.deepEqual(await page.getByRole('listitem').allInnerTexts(), ['CLIENT_ID', 'CLIENT_SECRET'])
  const button = page.getByRole('button', { name: SIGN_IN })
  assert.ok(await button.isDisabled())
  await button.focus()
  await page.keyboard.press('Enter')
  await button.click({ force: true })
  await page.locator('#sign-in').dispatchEvent('submit')
  await page.waitForLoadState('networkidle')
  assert.equal(new URL(page.url()).origin, incomplete.url)
})

const pictures = process.env.SCREENSHOTS
if (pictures)
  test('pictures of the pages are taken', async () => {
    const night = { colorScheme: 'dark' } as const
    const phone = { ...PHONE, viewport: { width: 390, height: 720 } }
    await picture('login', 'login', {})
    await picture('login-dark', 'login', night)
    await picture('login-phone', 'login', phone)
    for (const name of ['error', 'home', 'console', 'provider']) await picture(name, name, {})

    async function picture(file: string, name: string, options: BrowserContextOptions): Promise<void> {
      const stop = STOPS.find(stop => stop.name === name) ?? assert.fail(name)
      const visit = createVisits({ viewport: DESK, deviceScaleFactor: 2, ...options })
      const page = await visit(stop)
      await page.screenshot({ path: join(pictures ?? '', `${file}.png`) })
    }
  })

function authorizeAddress(): string {
  const query = { response_type: 'code', scope: 'read', client_id: 'menshen-development', state: 'abc_idp' }
  return `${providerUrl}/oauth/authorize?${new URLSearchParams({ ...query, redirect_uri: `${usual.url}/callback` })}`
}

async function signedInAs(url: string, user?: RegExp): Promise<State> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.getByRole('button', { name: SIGN_IN }).click()
  if (user) await page.getByRole('button', { name: user }).click()
  await page.waitForURL(`${url}/`)
  const state = await context.storageState()
  await context.close()
  return state
}

/** Where somebody gets who wants to end the first session of the list. */
async function askedToEnd(storageState: State): Promise<string> {
  const context = await browser.newContext({ storageState })
  const page = await context.newPage()
  await page.goto(`${usual.url}/_menshen/console/sessions`)
  await page
    .getByLabel(/^操作：/)
    .first()
    .click()
  await page
    .getByRole('link', { name: /^结束会话：/ })
    .first()
    .click()
  await page.waitForURL('**/sessions/end?*')
  const url = page.url()
  await context.close()
  return url
}

/** Opens pages one after the other, in a window for each kind of person. */
function createVisits(options: BrowserContextOptions = {}) {
  const windows = new Map<Who, Page>()
  return async ({ who, url }: Stop): Promise<Page> => {
    const storageState = states[who]
    const opened = windows.get(who)
    const page = opened ?? (await browser.newPage({ ...(storageState && { storageState }), ...options }))
    windows.set(who, page)
    await page.goto(url())
    return page
  }
}

/** Each page is loaded once, and everything that can be said of it on a desk is measured there. */
let walk: ReturnType<typeof walkOnDesk> | undefined
function seenOnDesk() {
  walk ??= walkOnDesk()
  return walk
}

async function walkOnDesk() {
  const findFaults = await createAxe()
  // Colours that are about to change would be taken by axe for what they change from.
  const visit = createVisits({ reducedMotion: 'reduce', colorScheme: 'light', viewport: DESK })
  const all = []
  for (const stop of STOPS) {
    const page = await visit(stop)
    const outline = await page.evaluate(readOutline)
    const mains = await page.getByRole('main').count()
    const headings = await page.getByRole('heading', { level: 1 }).count()
    const alerts = await page.getByRole('alert').allInnerTexts()
    const faults: string[] = []
    const inColours = async (colorScheme: ColorScheme) => {
      await page.emulateMedia({ colorScheme })
      if (ours.includes(stop))
        for (const fault of await findFaults(page, colorScheme)) faults.push(`${stop.name}, ${colorScheme}: ${fault}`)
      return page.evaluate(readContrasts)
    }
    const [dark, light] = [await inColours('dark'), await inColours('light')]
    const cut: string[] = []
    for (const width of [320, 360, 768, 1024, DESK.width]) {
      await resize(page, { ...DESK, width })
      for (const name of await page.evaluate(cutButtons)) cut.push(`${stop.name} at ${width} px: ${name}`)
    }
    all.push({ stop, outline, mains, headings, alerts, faults, light, dark, cut })
  }
  return all
}

async function resize(page: Page, size: { width: number; height: number }): Promise<void> {
  if (page.viewportSize()?.width !== size.width) await page.setViewportSize(size)
}

/** Presses Tab until what bears the name has the focus, and looks at every focus on the way. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let tabs = 0; tabs < 30; tabs++) {
    await page.keyboard.press('Tab')
    const { text, ring, ratio } = await page.evaluate(readFocus)
    if (text === undefined) continue // the browser's own bar
    assert.ok(ring >= 2 && ratio >= LEAST_RING_CONTRAST, `${page.url()}: the focus on ${text} is ${ring} px, ${ratio}`)
    if (text.includes(name)) return
  }
  assert.fail(`Tab does not reach ${name} on ${page.url()}`)
}

// What follows runs in the page, each function by itself.

/** The buttons and links of which an edge is beyond the window or what scrolls inside of it. */
function cutButtons(): string[] {
  const isCut = (element: Element) => {
    const { left, right } = element.getBoundingClientRect()
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX === 'visible' && box !== document.documentElement) continue
      const edges = box.getBoundingClientRect()
      if (left < edges.left - 1 || right > edges.right + 1) return true
    }
    return right > innerWidth || left < 0
  }
  return [...document.querySelectorAll('button, a, input:not([type=hidden])')]
    .filter(isCut)
    .map(element => element.getAttribute('aria-label') ?? element.textContent ?? '')
}

function measure() {
  const shown = [...document.querySelectorAll('button, a.button')].filter(button => button.checkVisibility())
  const buttons = shown.map(button => ({
    name: button.textContent?.trim(),
    height: Math.round(button.getBoundingClientRect().height * 10) / 10,
  }))
  return { contentWidth: document.documentElement.scrollWidth, buttons }
}

function readOutline() {
  const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)]
  const faults: string[] = []
  for (const field of all('input:not([type=hidden]), select, textarea') as HTMLInputElement[])
    if (!field.labels?.length && !field.ariaLabel) faults.push(`${field.outerHTML} has no label`)
  for (const control of all('a, button'))
    if (!control.textContent?.trim() && !control.ariaLabel) faults.push(`${control.outerHTML} has no name`)
  for (const image of all('img')) if (!image.hasAttribute('alt')) faults.push(`${image.outerHTML} has no alt`)
  for (const element of all('[tabindex]')) if (element.tabIndex > 0) faults.push(`${element.outerHTML} jumps the queue`)
  const ids = all('[id]').map(element => element.id)
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`id ${id} is there twice`)
  for (const element of all('[aria-labelledby]'))
    if (!ids.includes(element.getAttribute('aria-labelledby') ?? '')) faults.push(`${element.tagName} names nothing`)
  const levels = all('h1, h2, h3, h4').map(heading => Number(heading.tagName.slice(1)))
  levels.forEach((level, n) => {
    if (level > (levels[n - 1] ?? 0) + 1) faults.push(`heading ${n + 1} is of level ${level}`)
  })
  const heading = all('h1')[0]?.innerText.trim() ?? ''
  return { faults, heading, title: document.title, language: document.documentElement.lang }
}

function readContrasts() {
  for (const transition of document.getAnimations()) transition.finish()
  type Colour = [red: number, green: number, blue: number, alpha: number]
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })
  const known = new Map<string, Colour>()
  /** Any CSS colour. */
  const read = (css: string): Colour => {
    if (!canvas) throw new Error('no canvas')
    const before = known.get(css)
    if (before) return before
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = css
    canvas.fillRect(0, 0, 1, 1)
    const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data
    const colour: Colour = [red, green, blue, alpha / 255]
    known.set(css, colour)
    return colour
  }
  const over = (front: Colour, back: Colour, opacity = 1): Colour => {
    const alpha = front[3] * opacity
    const mix = (n: 0 | 1 | 2) => front[n] * alpha + back[n] * (1 - alpha)
    return [mix(0), mix(1), mix(2), 1]
  }
  const luminance = ([red, green, blue]: Colour) => {
    const linear = (value: number) => (value <= 10.31 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
  }
  /** What is seen of an element's background and of a colour on it. */
  const seen = (element: Element, colour: string): { back: Colour; front: Colour } => {
    const style = getComputedStyle(element)
    const behind = element.parentElement ? seen(element.parentElement, 'transparent').back : read('Canvas')
    const opacity = Number(style.opacity)
    const own = over(read(style.backgroundColor), behind)
    return { back: over(own, behind, opacity), front: over(over(read(colour), own), behind, opacity) }
  }
  const measured = (element: Element, text: string) => compare(seen(element, getComputedStyle(element).color), text)
  const compare = ({ back, front }: { back: Colour; front: Colour }, text: string) => {
    const [dark = 0, bright = 0] = [luminance(back), luminance(front)].sort((a, b) => a - b)
    return {
      text,
      ratio: (bright + 0.05) / (dark + 0.05),
      colours: `${front.map(Math.round)} on ${back.map(Math.round)}`,
    }
  }
  const texts: { text: string; ratio: number; colours: string }[] = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent?.trim().slice(0, 20)
    if (text && node.parentElement?.checkVisibility()) texts.push(measured(node.parentElement, text))
  }
  for (const field of document.querySelectorAll('input:not([type=hidden])')) texts.push(measured(field, field.id))
  /** The edge against what is around it. */
  const edgeOf = (element: HTMLElement) => {
    const { back } = seen(element.parentElement ?? document.body, 'transparent')
    const { borderTopColor } = getComputedStyle(element)
    return compare({ back, front: over(read(borderTopColor), back) }, `${element.tagName} ${element.innerText}`)
  }
  const framed = 'input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea, .tag, .button.quiet'
  const edges = [...document.querySelectorAll<HTMLElement>(framed)]
    .filter(element => element.checkVisibility() && !element.matches(':disabled'))
    .map(edgeOf)
  return { texts, edges, paper: luminance(seen(document.body, 'transparent').back) }
}

/** The ring around what has the focus, and its contrast to what is around it. */
function readFocus() {
  const element = document.activeElement
  if (!element || element === document.body) return { text: undefined, ring: 0, ratio: 0 }
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element)
  const numbers = (css: string) => (css.match(/[\d.]+/g) ?? []).map(Number)
  const isClear = (css: string) => css === 'transparent' || numbers(css)[3] === 0
  let around = element.parentElement
  while (around && isClear(getComputedStyle(around).backgroundColor)) around = around.parentElement
  const luminance = (css: string) => {
    const [red = 0, green = 0, blue = 0] = numbers(css).map(value => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const back = around ? getComputedStyle(around).backgroundColor : 'rgb(255, 255, 255)'
  const [dark = 0, bright = 0] = [luminance(back), luminance(outlineColor)].sort((a, b) => a - b)
  return {
    text: element.textContent?.trim() || element.id || element.tagName,
    ring: outlineStyle === 'none' ? 0 : Number.parseFloat(outlineWidth),
    ratio: (bright + 0.05) / (dark + 0.05),
  }
}
