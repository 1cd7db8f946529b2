// The script that applications may include: it tells their pages that the session ends, and nobody loses a form.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { startUpstream } from '../forward/upstream.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { createClient, signIn } from '../kit/client.ts'
import { startMenshen } from '../kit/process.ts'
import { startScriptedProvider } from '../kit/scripted-provider.ts'
import type { Behaviour } from '../kit/strict-provider.ts'
import { tempFolder } from '../kit/temp.ts'

const SIGN_IN = '统一身份认证登录'
const ME = '/_menshen/me'
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

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

test('a session that ended elsewhere: the dialog comes, the form stays, a sign-in in a new tab closes the dialog', async t => {
  const { page, url, me } = await openForm(t)
  await page.getByLabel('内容').fill(TYPED)
  await signOutElsewhere(page, url)
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.count(), 0)

  const other = await leaveFor(page)
  await other.close()
  await page.bringToFront()
  await dialog.waitFor()
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.equal(await page.locator('textarea').inputValue(), TYPED)

  const opened = page.context().waitForEvent('page')
  await dialog.getByRole('link', { name: '重新登录' }).click()
  const tab = await opened
  await tab.getByRole('button', { name: SIGN_IN }).click()
  await tab.waitForURL(`${url}/`)
  assert.equal(await dialog.isVisible(), true)
  await page.bringToFront()
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await page.getByLabel('内容').inputValue(), TYPED)
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.ok(me() < 10, `it asked ${me()} times`)
})

test('a session that was ended from the console, on a page that says so itself: one event, no dialog', async t => {
  const { page, url, provider } = await openForm(t, {}, '/form?quiet')
  const admin = createClient(url)
  await signIn(admin, provider, { username: 'admin' })
  const { text } = await admin.get('/_menshen/console?username=zhangsan')
  const [, session = ''] = /name="session" value="([^"]+)"/.exec(text) ?? []
  await admin.post('/_menshen/console/end', { session })
  for (let times = 0; times < 2; times++) {
    const other = await leaveFor(page)
    const asked = page.waitForResponse(`**${ME}`)
    await page.bringToFront()
    assert.equal((await asked).status(), 401)
    await other.close()
  }
  await page.waitForFunction('told.length > 0')
  assert.deepEqual(await told(page), ['menshen:ended'])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

test('a session that cannot be refreshed: the page is warned when a minute is left', async t => {
  const { page } = await openForm(t, { refreshTokens: false, expiresIn: 64 })
  assert.deepEqual(await told(page), [])
  await page.waitForFunction('told.length > 0')
  assert.deepEqual(await told(page), ['menshen:ending'])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

test('its end is noticed on a page that nobody touches', async t => {
  const { page } = await openForm(t, { refreshTokens: false, expiresIn: 4 })
  await page.getByRole('dialog').waitFor()
  assert.deepEqual(await told(page), ['menshen:ending', 'menshen:ended'])
})

test('a session that can be refreshed goes on under an open page', async t => {
  const { page, me } = await openForm(t, { expiresIn: 63 })
  const asked = me()
  await page.waitForResponse(`**${ME}`)
  assert.equal(me(), asked + 1)
  assert.deepEqual(await told(page), [])
})

test('a clock of the browser that is a day off changes nothing', async t => {
  const { page, me } = await openForm(t, {}, '/form', () => {
    const now = Date.now.bind(Date)
    Date.now = () => now() + 86_400_000
  })
  await pause(2500)
  assert.deepEqual(await told(page), [])
  assert.equal(me(), 1)
})

test('a visitor of a public page has no session that could end', async t => {
  const { page, url } = await openForm(t)
  await page.context().clearCookies()
  const asked = page.waitForResponse(`**${ME}`)
  await page.goto(`${url}/public`)
  assert.equal((await asked).status(), 401)
  await leaveFor(page)
  await page.bringToFront()
  await pause(500)
  assert.deepEqual(await told(page), [])
  assert.equal(await page.getByRole('dialog').count(), 0)
})

/** A user at a form of an application behind, whose script has asked once. */
async function openForm(t: TestContext, behaviour: Partial<Behaviour> = {}, path = '/form', init?: () => void) {
  const provider = await startScriptedProvider(behaviour)
  t.after(() => provider.close())
  const upstream = await startUpstream(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(FORM)
  })
  const cwd = tempFolder(t)
  writeFileSync(join(cwd, 'menshen.config.ts'), "export default { rules: [{ path: '/public', public: true }] }")
  const menshen = await startMenshen({ ...provider.settings, UPSTREAM: upstream.url, STORE: 'memory:' }, { cwd })
  t.after(menshen.stop)

  const { page, problems } = await openPage(t, browser, { locale: 'zh-CN' })
  page.setDefaultTimeout(20_000)
  // Chromium writes every 401 in red; that of an ended session is what the script asks for.
  t.after(() =>
    assert.deepEqual(
      problems.filter(problem => !/status of 401.*\/_menshen\/me\)$/.test(problem)),
      [],
    ),
  )
  if (init) await page.addInitScript(init)
  let asked = 0
  page.on('request', request => {
    if (new URL(request.url()).pathname === ME) asked += 1
  })
  await page.goto(menshen.url + path)
  const answered = page.waitForResponse(`**${ME}`)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await answered
  await page.waitForURL(menshen.url + path)
  return { page, provider, url: menshen.url, me: () => asked }
}

/** Another tab in front, as people have them; the page knows that it is behind. */
async function leaveFor(page: Page): Promise<Page> {
  const context = page.context()
  // Otherwise every page believes that it is in front.
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setFocusEmulationEnabled', { enabled: false })
  const other = await context.newPage()
  await other.bringToFront()
  await page.waitForFunction('!document.hasFocus()')
  return other
}

/** With the same ticket, as another tab would; that clears no cookie here. */
async function signOutElsewhere(page: Page, url: string): Promise<void> {
  const cookies = await page.context().cookies(url)
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  await createClient(url).post('/logout', '', { headers: { cookie } })
}

function told(page: Page): Promise<string[]> {
  return page.evaluate('told')
}
