// What people do with a browser, on the embedded defaults: a real process, a real browser, and not a word in red.

import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { zhCN } from '../../src/text/zh-CN.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { type Instance, startInstance } from '../kit/instance.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const SIGN_IN = '统一身份认证登录'
const AUTHORIZATION_PARAMETERS = ['client_id', 'redirect_uri', 'response_type', 'scope', 'state']

let browser: Browser
let menshen: Instance
let providerUrl: string

before(async () => {
  const DEV_PROVIDER_PORT = String(await freePort())
  providerUrl = `http://localhost:${DEV_PROVIDER_PORT}`
  browser = await startBrowser()
  menshen = await startInstance({ DEV_PROVIDER_PORT })
})

after(async () => {
  await browser?.close()
  await menshen?.stop()
})

test('a visitor reaches the home page in at most three clicks', async t => {
  const { page } = await visitor(t)
  let clicks = 0
  const click = (name: string | RegExp) => {
    clicks += 1
    return page.getByRole('button', { name }).click()
  }
  await page.goto(menshen.url)
  assert.equal(page.url(), `${menshen.url}/login`)
  await click(SIGN_IN)
  await click(/zhangsan/)
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()
  assert.equal(page.url(), `${menshen.url}/`)
  assert.ok(clicks <= 3)
  for (const text of ['zhangsan', '市场部', 'zhangsan@example.com', 'common'])
    await page.getByText(text, { exact: true }).waitFor()
})

test('a user without an e-mail address can sign in', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'wangwu')
  await page.getByRole('heading', { name: '王五，您好' }).waitFor()
  assert.equal(await page.getByText('邮箱').count(), 0)
})

test('the sign-in button stores the state in local storage and sends five parameters to the provider, each once', async t => {
  const { page } = await visitor(t)
  await page.goto(`${menshen.url}/login`)
  const url = await authorizationUrl(page)
  assert.equal(url.origin + url.pathname, `${providerUrl}/oauth/authorize`)
  assert.deepEqual([...url.searchParams.keys()].sort(), AUTHORIZATION_PARAMETERS)
  const { state = '', ...rest } = Object.fromEntries(url.searchParams)
  assert.deepEqual(rest, {
    response_type: 'code',
    scope: 'read',
    client_id: 'menshen-development',
    redirect_uri: `${menshen.url}/callback`,
  })
  assert.match(state, /^[\w-]{22,}_idp$/)
  await page.goto(`${menshen.url}/login`)
  assert.equal(await page.evaluate(() => localStorage.getItem('oauth_state')), state)
})

test('states differ even if Math.random and the clock always return the same value', async t => {
  const { page } = await visitor(t)
  await page.addInitScript(() => {
    Math.random = () => 0
    Date.now = () => 0
    performance.now = () => 0
  })
  const states = new Set<string | null>()
  for (let click = 0; click < 2; click++) {
    await page.goto(`${menshen.url}/login`)
    states.add((await authorizationUrl(page)).searchParams.get('state'))
  }
  assert.equal(states.size, 2)
})

test('the sign-in button works again after the Back button', async t => {
  const { page } = await visitor(t)
  await page.goto(menshen.url)
  await authorizationUrl(page)
  await page.goBack()
  assert.equal(await page.getByRole('button', { name: SIGN_IN }).getAttribute('aria-busy'), null)
  await authorizationUrl(page)
  await page.getByRole('button', { name: /zhangsan/ }).click()
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()
})

test('a double click on the sign-in button signs the user in once', async t => {
  const { page } = await visitor(t)
  const signIns = () => menshen.lines.map(({ event }) => event).filter(event => event.startsWith('sign_in'))
  const before = signIns().length
  await page.goto(menshen.url)
  await page.getByRole('button', { name: SIGN_IN }).evaluate((button: HTMLElement) => {
    button.click()
    button.click()
  })
  await page.getByRole('button', { name: /zhangsan/ }).click()
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()
  await until(() => signIns().length > before)
  assert.deepEqual(signIns().slice(before), ['sign_in'])
})

test('sign-in returns to a deep link with its query and fragment, and the next sign-in does not', async t => {
  const { page } = await visitor(t)
  const deep = `${menshen.url}/_menshen/console/sessions?username=%E4%B8%AD%20%2B%26&x=2#/tab/%E4%B8%89?x=1&y=%23`
  await page.goto(deep)
  assert.equal(new URL(page.url()).pathname, '/login')
  await chooseUser(page, 'admin')
  await page.getByRole('heading', { name: '会话', exact: true }).waitFor()
  assert.equal(page.url(), deep)
  assert.equal(await page.getByLabel('查找用户').inputValue(), '中 +&')

  await page.goto(`${menshen.url}/logout`)
  await chooseUser(page, 'admin')
  await page.getByRole('heading', { name: '管理员，您好' }).waitFor()
  assert.equal(page.url(), `${menshen.url}/`)
})

test('a deep link under another host name of this machine leads to BASE_URL, and sign-in returns to the same page there', async t => {
  const { page } = await visitor(t)
  const deep = '/_menshen/console/sessions?username=nobody#settings'
  await page.goto(menshen.url.replace('localhost', '127.0.0.1') + deep)
  assert.equal(new URL(page.url()).origin + new URL(page.url()).pathname, `${menshen.url}/login`)
  await chooseUser(page, 'admin')
  await page.getByRole('heading', { name: '会话', exact: true }).waitFor()
  assert.equal(page.url(), menshen.url + deep)
})

test('a user who declines at the provider sees the reason, and the second attempt returns to the deep link', async t => {
  const { page } = await visitor(t)
  const deep = `${menshen.url}/_menshen/console/sessions?username=nobody#settings`
  await page.goto(deep)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.getByRole('button', { name: '拒绝' }).click()
  await page.waitForURL('**/login?*')
  assert.equal(page.url(), `${menshen.url}/login?error=access_denied`)
  const alert = await page.getByRole('alert').innerText()
  assert.ok(alert.includes(zhCN['error.access_denied.message']), alert)

  await chooseUser(page, 'admin')
  await page.getByRole('heading', { name: '会话', exact: true }).waitFor()
  assert.equal(page.url(), deep)
})

test('the fragment of an abandoned deep link is not added to the next one', async t => {
  const { page } = await visitor(t)
  await page.goto(`${menshen.url}/first#old`)
  await page.goto(`${menshen.url}/second`)
  await chooseUser(page, 'zhangsan')
  await page.waitForURL('**/second*')
  assert.equal(page.url(), `${menshen.url}/second`)
})

test('the sign-out button signs out all tabs and removes the session cookie', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'zhangsan')
  const tab = await page.context().newPage()
  await tab.goto(menshen.url)
  await page.getByRole('button', { name: '退出登录' }).click()
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
  assert.equal(page.url(), `${menshen.url}/login`)
  await tab.reload()
  assert.equal(tab.url(), `${menshen.url}/login`)
  await page.goBack()
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
  const names = (await page.context().cookies()).map(cookie => cookie.name)
  assert.ok(!names.includes('menshen_session'), names.join())
})

test('after a sign-out in another tab, a reload leads to the login page', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'lisi')
  const other = await page.context().newPage()
  await other.goto(`${menshen.url}/logout`)
  await other.waitForURL('**/login')
  await page.reload()
  assert.equal(page.url(), `${menshen.url}/login`)
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
})

test('after a sign-out, the Back button shows no page from the browser’s cache', async t => {
  let served = 0
  const answer: RequestListener = (_, response) => {
    served += 1
    response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'private, max-age=3600' })
    response.end(`<title>kept</title><a href="/other">page ${served}</a>`)
  }
  const upstream = await startUpstream(t, answer)
  const own = await openGateway(t, { UPSTREAM: upstream.url }, { devProvider: true, hasRunningClock: true })
  const { page } = await openPage(t, browser)
  await page.goto(`${own.url}/page`)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.getByRole('button', { name: /lisi/ }).click()
  await page.waitForURL(`${own.url}/page`)
  const before = served
  await page.getByRole('link').click()
  await page.goto(`${own.url}/page`)
  assert.equal(served, before + 1, 'the browser keeps the pages of this application')
  await page.goto(`${own.url}/logout`)
  await page.waitForURL(`${own.url}/login`)
  await page.goBack()
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
  assert.doesNotMatch(await page.content(), /kept/)
})

test('the login page shows the signed-in user, who can continue or sign in as another user', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'zhangsan')
  await page.goto(`${menshen.url}/login`)
  assert.match(await page.getByRole('status').innerText(), /张三/)
  await page.getByRole('link', { name: '继续访问' }).click()
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()

  await page.goto(`${menshen.url}/login`)
  await chooseUser(page, 'wangwu')
  await page.getByRole('heading', { name: '王五，您好' }).waitFor()
})

test('a developer ends the session of another user in the console, and that user returns to the login page', async t => {
  const { page: developer } = await visitor(t)
  const { page: user } = await visitor(t)
  await signIn(user, 'lisi')
  await user.goto(`${menshen.url}/nowhere`)

  await signIn(developer, 'admin')
  await developer.getByRole('link', { name: '控制台' }).click()
  await developer.getByRole('link', { name: '会话', exact: true }).click()
  await developer.getByLabel('查找用户').fill('LiSi')
  await developer.getByRole('button', { name: '查找' }).click()
  await developer.waitForURL('**/_menshen/console/sessions?username=LiSi')
  const lisi = developer.getByRole('rowheader', { name: /李四 lisi/ })
  assert.match(await lisi.innerText(), /李四.*普通用户/s)
  const row = developer.getByRole('row', { name: /选择会话：lisi/ })
  assert.match(await row.innerText(), /Chrome · Linux\s+127\.0\.0\.1/)
  // One menu has all that can be done; it opens without scripts.
  const menu = row.getByLabel('操作：lisi · Chrome · Linux')
  await menu.click()
  await row.getByRole('link', { name: '结束会话：lisi · Chrome · Linux', exact: true }).click()
  await developer.getByRole('heading', { name: '要结束 lisi 的这个会话吗？' }).waitFor()
  await developer.getByRole('link', { name: '取消' }).click()
  await menu.click()
  await row.getByRole('link', { name: '结束会话：lisi · Chrome · Linux', exact: true }).click()
  await developer.getByRole('button', { name: '结束会话' }).click()
  await developer.waitForURL('**/_menshen/console/sessions')
  await developer.getByRole('status').getByText('已结束 lisi 的 1 个会话。').waitFor()
  await row.waitFor({ state: 'detached' })

  await user.getByRole('link', { name: '返回首页' }).click()
  await user.getByRole('button', { name: SIGN_IN }).waitFor()
  assert.equal(user.url(), `${menshen.url}/login`)

  await developer.goto(`${menshen.url}/_menshen/console/sessions`)
  const own = developer.getByRole('row', { name: /当前会话/ })
  await own.getByLabel('操作：admin').click()
  await own.getByRole('link', { name: /^结束会话：admin · / }).click()
  await developer.getByText('这是您自己正在使用的会话').waitFor()
  await developer.getByRole('button', { name: '结束会话' }).click()
  await developer.getByRole('button', { name: SIGN_IN }).waitFor()
})

test('a user signs out another device from a phone and stays signed in', async t => {
  const { page: desk } = await visitor(t)
  const { page: phone } = await visitor(t, { isMobile: true, hasTouch: true, viewport: { width: 390, height: 720 } })
  await signIn(desk, 'wangwu')
  await signIn(phone, 'wangwu')
  await phone.getByRole('link', { name: '我的账号和设备' }).tap()
  await phone.getByRole('heading', { name: '我的设备' }).waitFor()
  assert.equal(await phone.getByText('当前设备', { exact: true }).count(), 1)
  const name = /^下线：Chrome · Linux，127\.0\.0\.1$/
  await phone.locator('summary').and(phone.getByLabel(name)).first().tap()
  const question = phone.locator('.question').filter({ visible: true })
  await question.getByText('要让 Chrome · Linux（127.0.0.1）退出登录吗？').waitFor()
  await question.getByRole('button', { name }).tap()
  await phone.getByRole('status').getByText('已下线 1 台其他设备。').waitFor()
  await desk.reload()
  await desk.getByRole('button', { name: SIGN_IN }).waitFor()
  await phone.reload()
  await phone.getByRole('heading', { name: '我的设备' }).waitFor()
})

test('a common user sees no link to the console and gets 403 there', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'zhangsan')
  assert.equal(await page.getByRole('link', { name: '控制台' }).count(), 0)
  const answer = await page.goto(`${menshen.url}/_menshen/console`)
  assert.equal(answer?.status(), 403)
  await page.getByRole('heading', { name: '没有访问权限' }).waitFor()
  await page.getByRole('link', { name: '返回首页' }).click()
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()
})

test('the whole journey works without scripts: deep link, declined sign-in, home, console and sign-out', async t => {
  const { page } = await visitor(t, { javaScriptEnabled: false })
  await page.goto(`${menshen.url}/reports?year=2026`)
  assert.deepEqual([...(await authorizationUrl(page)).searchParams.keys()].sort(), AUTHORIZATION_PARAMETERS)
  await page.getByRole('button', { name: '拒绝' }).click()
  await page.getByRole('alert').waitFor()
  await chooseUser(page, 'admin')
  await page.waitForURL('**/reports?*')
  assert.equal(page.url(), `${menshen.url}/reports?year=2026`)
  await page.getByRole('link', { name: '返回首页' }).click()
  await page.getByRole('link', { name: '控制台' }).click()
  await page.getByRole('link', { name: '会话', exact: true }).click()
  await page.getByRole('row', { name: /当前会话/ }).waitFor()
  await page.getByRole('link', { name: '返回首页' }).click()
  await page.getByRole('button', { name: '退出登录' }).click()
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
  await page.goto(menshen.url)
  assert.equal(page.url(), `${menshen.url}/login`)
})

test('with a bound state and PKCE, sign-in returns to the requested page, with and without scripts', async t => {
  const env = { STATE_CHECK: 'bound', PKCE: 'S256' }
  const own = await openGateway(t, env, { devProvider: true, hasRunningClock: true })
  for (const javaScriptEnabled of [true, false]) {
    const { page } = await visitor(t, { javaScriptEnabled })
    await page.goto(`${own.url}/reports?year=2026`)
    const { searchParams } = await authorizationUrl(page)
    const parameters = ['code_challenge', 'code_challenge_method', ...AUTHORIZATION_PARAMETERS]
    assert.deepEqual([...searchParams.keys()].sort(), parameters.sort())
    await page.getByRole('button', { name: /zhangsan/ }).click()
    await page.waitForURL('**/reports?*')
    await page.getByRole('link', { name: '返回首页' }).click()
    await page.getByRole('heading', { name: '张三，您好' }).waitFor()
    if (!javaScriptEnabled) continue
    await page.goto(`${own.url}/login`)
    assert.equal(await page.evaluate(() => localStorage.getItem('oauth_state')), searchParams.get('state'))
  }
})

test('sign-in works if the browser blocks local storage', async t => {
  const { page } = await visitor(t)
  await page.addInitScript(() => {
    Object.defineProperty(window, 'localStorage', {
      get() {
        throw new DOMException('switched off', 'SecurityError')
      },
    })
  })
  await signIn(page, 'zhangsan')
  await page.getByRole('heading', { name: '张三，您好' }).waitFor()
})

test('scripts of the page can read neither the access token nor the ticket', async t => {
  const provider = await openScriptedProvider(t, { user: { username: 'admin' } })
  const own = await openGateway(t, provider.settings, { hasRunningClock: true })
  const { page } = await visitor(t)
  await page.goto(`${own.url}/?year=2026#here`)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.waitForURL('**/?year=2026#here')

  const reachable = await page.evaluate(async () => {
    const texts = [document.cookie, JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })]
    texts.push(document.documentElement.outerHTML, location.href, document.referrer, window.name)
    texts.push(JSON.stringify(history.state), JSON.stringify(performance.getEntries()))
    texts.push(JSON.stringify(await indexedDB.databases()), JSON.stringify(await caches.keys()))
    for (const path of ['/', '/login', '/_menshen/me', '/_menshen/ready', '/_menshen/console']) {
      const answer = await fetch(path)
      texts.push(JSON.stringify([...answer.headers]), await answer.text())
    }
    return texts.join('\n')
  })
  const session = (await page.context().cookies()).find(cookie => cookie.name === 'menshen_session')
  assert.ok(session?.httpOnly)
  assert.equal(session.sameSite, 'Lax')
  assert.ok(!reachable.includes(session.value))
  assert.match(reachable, /admin@example.com/)
  assert.match(reachable, /oauth_state/)
  assert.doesNotMatch(reachable, /CANARY/)
})

test('a page of another site cannot sign the user out, by a link or by a form', async t => {
  const { page } = await visitor(t)
  await signIn(page, 'admin')
  const other = await page.context().newPage()
  const evil = 'https://evil.example/'
  const lure = (html: string) => other.route(evil, route => route.fulfill({ body: html, contentType: 'text/html' }))
  await lure(
    `<a href="${menshen.url}/logout">look</a><form method="post" action="${menshen.url}/logout"><button>go</button></form>`,
  )
  await other.goto(evil)
  await other.getByRole('link').click()
  await other.getByRole('heading', { name: '要退出登录吗？' }).waitFor()
  await other.goto(evil)
  await other.getByRole('button').click()
  await other.getByRole('heading', { name: '要退出登录吗？' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: '管理员，您好' }).waitFor()
  await other.getByRole('button', { name: '退出登录' }).click()
  await other.getByRole('button', { name: SIGN_IN }).waitFor()

  const { headers } = await createClient(menshen.url).get('/login')
  assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
})

/** A fresh visitor; at the end of the test, nothing may have been written in red on any page. */
async function visitor(t: TestContext, options: BrowserContextOptions = {}) {
  const { page, problems } = await openPage(t, browser, { locale: 'zh-CN', ...options })
  page.setDefaultTimeout(20_000)
  t.after(() => assert.deepEqual(problems, []))
  return { page, problems }
}

async function signIn(page: Page, username: string): Promise<void> {
  await page.goto(menshen.url)
  await chooseUser(page, username)
  await page.waitForURL(`${menshen.url}/`)
}

async function chooseUser(page: Page, username: string): Promise<void> {
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.getByRole('button', { name: new RegExp(`\\b${username}\\b`) }).click()
}

/** Clicks, and gives the address that the browser was taken to. */
async function authorizationUrl(page: Page): Promise<URL> {
  const isAuthorization = (url: string) => new URL(url).pathname === '/oauth/authorize'
  const request = page.waitForRequest(request => isAuthorization(request.url()))
  await page.getByRole('button', { name: SIGN_IN }).click()
  const url = new URL((await request).url())
  await page.getByRole('heading', { name: '以谁的身份登录？' }).waitFor()
  return url
}
