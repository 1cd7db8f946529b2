// The script that applications may include: it tells their pages that the session ends, and nobody loses a form.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { createClient, signIn } from '../kit/client.ts'
import { openScriptedProvider, type ScriptedProvider } from '../kit/scripted-provider.ts'
import { type Gateway, openGateway, wholeFile } from '../kit/set-up.ts'
import type { Behaviour } from '../kit/strict-provider.ts'

const SIGN_IN = '统一身份认证登录'
const ME = '/_menshen/me'
/** How the provider behaves unless a test wishes otherwise. */
const USUAL: Partial<Behaviour> = { expiresIn: 7200, refreshTokens: true, user: { username: 'zhangsan' } }
const TYPED = '写了半个小时的内容'
/** `window.told` has the events, in their order; with `?quiet` the page says it itself. */
const FORM = `<!doctype html><html lang="zh-CN"><title>form</title><link rel="icon" href="data:,">
<script>
  window.told = []
  for (const name of ['menshen:ending', 'menshen:ended'])
    addEventListener(name, event => {
      told.push(name)
      if (location.search === '?quiet') event.preventDefault()
    })
</script>
<script type="module" src="/_menshen/assets/session.js"></script>
<form><label>内容 <textarea></textarea></label></form>`

const whole = wholeFile()
let browser: Browser
let provider: ScriptedProvider
let menshen: Gateway
/** A page that does not know Menshen, with a policy that runs only scripts with its nonce. */
const BARE = '<!doctype html><html lang="zh-CN"><title>bare</title><link rel="icon" href="data:,"><p>report</p></html>'
const POLICY = "default-src 'self'; img-src data:; script-src 'nonce-r4nd0m' 'strict-dynamic'"
const application = createServer(({ url }, response) => {
  const isBare = url === '/bare'
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    ...(isBare && { 'content-security-policy': POLICY }),
  })
  response.end(isBare ? BARE : FORM)
})

before(async () => {
  browser = await startBrowser()
  provider = await openScriptedProvider(whole)
  await once(application.listen(0, '127.0.0.1'), 'listening')
  const UPSTREAM = `http://127.0.0.1:${(application.address() as AddressInfo).port}`
  const upstreams = { '/bare': { url: UPSTREAM, sessionScript: true } }
  const config = { rules: [{ path: '/public', public: true as const }], upstreams }
  menshen = await openGateway(whole, { ...provider.settings, UPSTREAM }, { config, hasRunningClock: true })
})

after(async () => {
  await browser?.close()
  application.close()
})

test('after a sign-out elsewhere a dialog appears, the form keeps its text, and a sign-in in a new tab closes the dialog', async t => {
  const { page, me } = await openForm(t)
  await page.getByLabel('内容').fill(TYPED)
  await signOutElsewhere(page)
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.count(), 0)

  await leave(page)
  await comeBack(page)
  await dialog.waitFor()
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.equal(await page.locator('textarea').inputValue(), TYPED)

  const opened = page.context().waitForEvent('page')
  await dialog.getByRole('link', { name: '重新登录' }).click()
  const tab = await opened
  await leave(page, tab)
  await tab.getByRole('button', { name: SIGN_IN }).click()
  await tab.waitForURL(`${menshen.url}/`)
  assert.equal(await dialog.isVisible(), true)
  await comeBack(page)
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await page.getByLabel('内容').inputValue(), TYPED)
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.ok(me() < 10, `it asked ${me()} times`)
})

test('the session-ended dialog has a name, a heading and our colours, closes by Escape or an outside click, and returns focus', async t => {
  const { page } = await openForm(t)
  await page.getByLabel('内容').focus()
  await signOutElsewhere(page)
  await leave(page)
  await comeBack(page)
  const dialog = page.getByRole('dialog', { name: '登录已失效' })
  await dialog.getByRole('heading', { name: '登录已失效' }).waitFor()
  const look = await dialog.evaluate(element => {
    const link = element.querySelector('a')
    return [getComputedStyle(element).backgroundColor, link && getComputedStyle(link).backgroundColor]
  })
  assert.deepEqual(look, ['rgb(255, 255, 255)', 'rgb(29, 91, 143)'])
  await dialog.getByRole('heading').click()
  assert.equal(await dialog.isVisible(), true, 'a click inside does not close it')
  await page.mouse.click(3, 3)
  await dialog.waitFor({ state: 'hidden' })
  const hasFocus = () => page.evaluate(() => document.activeElement?.tagName)
  assert.equal(await hasFocus(), 'TEXTAREA')
  await page.evaluate(() => {
    const host = [...document.querySelectorAll('div')].find(({ shadowRoot }) => shadowRoot)
    host?.shadowRoot?.querySelector('dialog')?.showModal()
  })
  await dialog.waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await hasFocus(), 'TEXTAREA')
})

test('a page that handles menshen:ended gets one event and no dialog when its session is ended in the console', async t => {
  const { page } = await openForm(t, { user: { username: 'lisi' } }, '/form?quiet')
  const admin = createClient(menshen.url)
  await signIn(admin, provider, { username: 'admin' })
  const { text } = await admin.get('/_menshen/console/sessions?username=lisi')
  const [, session = ''] = /name="session" value="([^"]+)"/.exec(text) ?? []
  await admin.post('/_menshen/console/end', { session })
  for (let times = 0; times < 2; times++) {
    await leave(page)
    const asked = page.waitForResponse(`**${ME}`)
    await comeBack(page)
    assert.equal((await asked).status(), 401)
  }
  await page.waitForFunction('told.length > 0')
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

test('a page gets menshen:ending one minute before a session that cannot be refreshed ends', async t => {
  const { page } = await openForm(t, { refreshTokens: false, expiresIn: 64 })
  assert.deepEqual(await told(page), [])
  await page.waitForFunction('told.length > 0')
  assert.deepEqual(await told(page), ['menshen:ending'])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

test('the end of a session is noticed on a page without user activity', async t => {
  const { page } = await openForm(t, { refreshTokens: false, expiresIn: 4 })
  await page.getByRole('dialog').waitFor()
  assert.deepEqual(await told(page), ['menshen:ending', 'menshen:ended'])
})

test('sessionScript shows the dialog on a page without the script, even under a Content-Security-Policy with a nonce', async t => {
  const { page } = await openForm(t, { refreshTokens: false, expiresIn: 4 }, '/bare')
  await page.getByRole('dialog').waitFor()
  assert.equal(await page.getByText('report').isVisible(), true)
})

test('a session that can be refreshed continues on an open page without any event', async t => {
  const { page, me } = await openForm(t, { expiresIn: 63 })
  const asked = me()
  await page.waitForResponse(`**${ME}`)
  assert.equal(me(), asked + 1)
  assert.deepEqual(await told(page), [])
})

test('a browser clock that is a day off causes no events and no extra requests', async t => {
  const { page, me } = await openForm(t, {}, '/form', Date.now() + 86_400_000)
  // The script asks again after ten minutes at the latest.
  await page.clock.fastForward('09:30')
  await page.evaluate(() => fetch('/form'))
  assert.deepEqual(await told(page), [])
  assert.equal(me(), 1)
})

test('a visitor of a public page gets neither session events nor the dialog', async t => {
  const { page } = await openForm(t)
  await page.context().clearCookies()
  const asked = page.waitForResponse(`**${ME}`)
  await page.goto(`${menshen.url}/public`)
  assert.equal((await asked).status(), 401)
  await leave(page)
  const again = page.waitForResponse(`**${ME}`)
  await comeBack(page)
  assert.equal((await again).status(), 401)
  // The script has read its answer when that of another request is here.
  await page.evaluate(() => fetch('/public'))
  assert.deepEqual(await told(page), [])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

/** A user at a form of an application behind, whose script has asked once; `clock` is what the browser's shows. */
async function openForm(t: TestContext, behaviour: Partial<Behaviour> = {}, path = '/form', clock?: number) {
  Object.assign(provider.behaviour, USUAL, behaviour)
  const { page, problems } = await openPage(t, browser, { locale: 'zh-CN' })
  page.setDefaultTimeout(20_000)
  // Chromium writes every 401 in red; that of an ended session is what the script asks for.
  t.after(() =>
    assert.deepEqual(
      problems.filter(problem => !/status of 401.*\/_menshen\/me\)$/.test(problem)),
      [],
    ),
  )
  if (clock !== undefined) await page.clock.install({ time: clock })
  let asked = 0
  page.on('request', request => {
    if (new URL(request.url()).pathname === ME) asked += 1
  })
  await page.goto(menshen.url + path)
  const answered = page.waitForResponse(`**${ME}`)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await answered
  await page.waitForURL(menshen.url + path)
  return { page, me: () => asked }
}

/** Another tab in front and the window put away, as people do it: one browser hides its page by this, one by that. */
async function leave(page: Page, other?: Page): Promise<void> {
  const front = other ?? (await page.context().newPage())
  await front.bringToFront()
  await setWindow(page, 'minimized')
  await page.waitForFunction('!document.hasFocus()')
}

async function comeBack(page: Page): Promise<void> {
  await setWindow(page, 'normal')
  await page.bringToFront()
}

async function setWindow(page: Page, windowState: 'minimized' | 'normal'): Promise<void> {
  const session = await page.context().newCDPSession(page)
  // Otherwise every page believes that it is in front.
  await session.send('Emulation.setFocusEmulationEnabled', { enabled: false })
  const { windowId } = await session.send('Browser.getWindowForTarget')
  await session.send('Browser.setWindowBounds', { windowId, bounds: { windowState } })
}

/** With the same ticket, as another tab would; that clears no cookie here. */
async function signOutElsewhere(page: Page): Promise<void> {
  const cookies = await page.context().cookies(menshen.url)
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  await createClient(menshen.url).post('/logout', '', { headers: { cookie } })
}

function told(page: Page): Promise<string[]> {
  return page.evaluate('told')
}
