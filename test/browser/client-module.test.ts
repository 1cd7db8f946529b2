// menshen/browser: what a page's own scripts are told of the session, and how they sign in and out.
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import * as client from '../../browser/client.js'
import type { UserInfo } from '../../src/provider/user.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { createClient } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'

const SIGN_IN = '统一身份认证登录'
const ME = '/_menshen/me'
/** Public. The module is `client`; `told` has what its listeners heard. */
const PAGE = `<!doctype html><html lang="zh-CN"><title>page</title><link rel="icon" href="data:,">
<script type="module">
  import * as client from '/_menshen/assets/client.js'
  window.told = []
  window.client = client
  window.listen = () => {
    const stops = ['onEnding', 'onEnded', 'onResumed'].map(name => client[name](() => told.push(name)))
    return () => { for (const stop of stops) stop() }
  }
</script>`

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

test('signIn returns the visitor to the page, me returns the user, and signOut ends the session', async t => {
  const { page, url, answers } = await open(t)
  assert.equal(await page.evaluate('client.me()'), undefined)
  await page.evaluate('client.signIn()')
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.waitForURL(`${url}/public?a=b#part`)
  await page.waitForFunction('window.client')
  const me = (await page.evaluate('client.me()')) as client.Me
  assert.equal(me.userInfo.username, 'zhangsan')
  assert.deepEqual([me.userRole, me.groups, typeof me.expiresAt], ['common', [], 'number'])

  await page.evaluate('client.signOut()')
  await page.waitForURL(`${url}/login`)
  await page.goto(`${url}/public`)
  assert.equal(await page.evaluate('client.me()'), undefined)
  await page.evaluate("client.signIn('/public/two?c#d')")
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.waitForURL(`${url}/public/two?c#d`)
  answers.push(503)
  await assert.rejects(page.evaluate('client.me()'), /answered 503/)
})

test('menshen/browser calls listeners once for an ended and a resumed session, and sends no requests without listeners', async t => {
  const { page, url, asked } = await open(t)
  await signInAt(page, url)
  // To sign in asks once, where the login page is.
  assert.equal(asked(), 1)
  await listen(page)
  assert.equal(asked(), 2)

  const cookies = await page.context().cookies(url)
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  await createClient(url).post('/logout', '', { headers: { cookie } })
  for (let times = 0; times < 2; times++) await askAgain(page)
  assert.deepEqual(await told(page), ['onEnded'])
  // Who comes late is told too.
  await page.evaluate("void client.onEnded(() => told.push('late'))")
  await page.waitForFunction("told.includes('late')")

  const tab = await page.context().newPage()
  await tab.goto(`${url}/public`)
  await signInAt(tab, url)
  await tab.close()
  await askAgain(page)
  assert.deepEqual(await told(page), ['onEnded', 'late', 'onResumed'])

  await page.reload()
  await page.waitForFunction('window.client')
  await listen(page)
  const before = asked()
  await page.evaluate('stop(); dispatchEvent(new Event("focus")); client.me()')
  assert.equal(asked(), before + 1)
})

test('menshen/browser can be imported without a window, and its types match those of the server', () => {
  assert.equal(typeof window, 'undefined')
  assert.deepEqual(Object.keys(client).sort(), [
    'me',
    'onActive',
    'onEnded',
    'onEnding',
    'onIdle',
    'onResumed',
    'signIn',
    'signOut',
    'stay',
  ])
  const same = (info: UserInfo): client.UserInfo => info
  const more = (me: client.Me<'dept'>): string | undefined => me.userInfo.dept
  assert.equal(typeof same, typeof more)
})

async function open(t: TestContext) {
  const scene = await setUp(t, {
    config: { rules: [{ path: '/public', public: true }] },
    answer: (_request, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end(PAGE),
  })
  // The page compares with the Date of the answers, which is the machine's.
  scene.passSeconds(Math.floor((Date.now() - scene.now()) / 1000))
  const { page } = await openPage(t, browser, { locale: 'zh-CN' })
  page.setDefaultTimeout(20_000)
  let asked = 0
  /** Statuses in place of the gateway's own. */
  const answers: number[] = []
  await page.route(`**${ME}`, route => {
    asked += 1
    const status = answers.shift()
    return status ? route.fulfill({ status }) : route.continue()
  })
  await page.goto(`${scene.baseUrl}/public?a=b#part`)
  await page.waitForFunction('window.client')
  return { page, url: scene.baseUrl, asked: () => asked, answers }
}

async function signInAt(page: Page, url: string): Promise<void> {
  await page.evaluate('client.signIn()')
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.waitForURL(`${url}/public**`)
  await page.waitForFunction('window.client')
}

function listen(page: Page): Promise<void> {
  return untilAnswered(page, 'void (window.stop = listen())')
}

/** As if the user came back to the page. */
function askAgain(page: Page): Promise<void> {
  return untilAnswered(page, 'void dispatchEvent(new Event("focus"))')
}

async function untilAnswered(page: Page, script: string): Promise<void> {
  const answered = page.waitForResponse(`**${ME}`)
  await page.evaluate(script)
  await answered
  // What the page asks next is answered after it has read that.
  await page.evaluate("fetch('/_menshen/health').then(answer => answer.text())")
}

function told(page: Page): Promise<string[]> {
  return page.evaluate('told')
}
