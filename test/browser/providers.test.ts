// A user with a real browser signs in at a real provider, whose pages are its own, and through one of several providers.

import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { CLIENTS, type OidcProvider, startOidcProvider } from '../kit/live/oidc-provider.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { type Gateway, openGateway, wholeFile } from '../kit/set-up.ts'

const SIGN_IN = '统一身份认证登录'

const whole = wholeFile()
let browser: Browser
let provider: OidcProvider
let menshen: Gateway

before(async () => {
  const port = String(await freePort())
  browser = await startBrowser()
  provider = await startOidcProvider({ gateway: `http://localhost:${port}` })
  const { id, secret } = CLIENTS.basic
  const settings = { PORT: port, PROVIDER: 'oidc', AUTH_URL: provider.issuer, CLIENT_ID: id, CLIENT_SECRET: secret }
  menshen = await openGateway(whole, settings, { hasRunningClock: true })
})

after(async () => {
  await browser?.close()
  await provider?.close()
})

test('a user signs in at a real provider, returns to the requested page, and signs out again', async t => {
  const { page, problems } = await visitor(t)
  const deep = `${menshen.url}/_menshen/account?x=%E4%B8%AD%20%2B#devices`
  await page.goto(deep)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.getByPlaceholder('Enter any login').fill('alice')
  await page.getByPlaceholder('and password').fill('any')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForURL(deep)
  await page.getByText('Alice Example').first().waitFor()

  await page.goto(menshen.url)
  await page.getByRole('button', { name: '退出登录' }).click()
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await page.waitForURL(url => url.pathname === '/login')
  await page.getByText('您已安全退出登录。').waitFor()
  await page.goto(menshen.url)
  assert.equal(page.url(), `${menshen.url}/login`)
  assert.deepEqual(problems(), [])
  assert.deepEqual(provider.failures, [])
})

test('a user who cancels at the provider returns to the login page with access_denied and can try again', async t => {
  const { page } = await visitor(t)
  await page.goto(menshen.url)
  await page.getByRole('button', { name: SIGN_IN }).click()
  await page.getByRole('link', { name: 'Cancel' }).click()
  await page.waitForURL(`${menshen.url}/login?error=access_denied`)
  await page.getByRole('button', { name: SIGN_IN }).waitFor()
})

test('each login button signs in through its own provider, with and without scripts, on a phone in dark mode', async t => {
  const [staff, partners] = [await startOidcServer(t), await startOidcServer(t)]
  const providers = {
    staff: { ...staff.config, name: '企业账号' },
    partners: { ...partners.config, name: '合作伙伴' },
  }
  const gateway = await openGateway(t, {}, { config: { providers } })
  for (const provider of [staff, partners]) provider.now = gateway.now
  for (const javaScriptEnabled of [true, false])
    for (const name of ['企业账号', '合作伙伴']) {
      const options = { javaScriptEnabled, viewport: { width: 360, height: 720 }, colorScheme: 'dark' as const }
      const { page, problems } = await openPage(t, browser, options)
      await page.goto(`${gateway.baseUrl}/login`)
      await page.getByRole('button', { name: `${name}登录` }).click()
      await page.waitForURL(`${gateway.baseUrl}/`)
      assert.match(await page.locator('dl').innerText(), new RegExp(`登录方式\\s+${name}`))
      assert.deepEqual(problems, [])
    }
})

/** `problems` are those of our own pages. */
async function visitor(t: TestContext): Promise<{ page: Page; problems(): string[] }> {
  const { page, problems } = await openPage(t, browser)
  // The provider's pages want a font from far away.
  await page.route('https://fonts.googleapis.com/**', route => route.fulfill({ contentType: 'text/css', body: '' }))
  return { page, problems: () => problems.filter(problem => !problem.includes(provider.issuer)) }
}
