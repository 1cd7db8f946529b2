// Late answers and AUTO_SIGN_IN in a real browser: users end signed in or on the login page, never on an error that they could
// not help, and never in a circle.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as forward } from 'node:http'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { setUpLive } from '../kit/live/live-set-up.ts'
import { openGateway, setUp } from '../kit/set-up.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

/** The addresses that the browser opens from now on, redirects included. */
function watch(page: Page): string[] {
  const opened: string[] = []
  page.on('request', request => request.isNavigationRequest() && opened.push(request.url()))
  return opened
}

/** Fills in the forms of oidc-provider. */
async function signInAtProvider(page: Page): Promise<void> {
  await page.fill('[name=login]', 'alice')
  await page.fill('[name=password]', 'any')
  await page.getByRole('button').first().click()
  await page.getByRole('button', { name: /continue/i }).click()
}

test('after a late sign-in, the Back button, a callback reload and a provider bookmark keep the user signed in without error', async t => {
  const { url, provider, passSeconds, events } = await setUpLive(t)
  const { page, problems } = await openPage(t, browser)
  const opened = watch(page)
  await page.goto(`${url}/login`)
  await page.locator('form[action="/login"] button').click()
  await page.waitForURL(address => address.href.startsWith(provider.issuer))
  // The user is away for longer than an attempt lives.
  passSeconds(31 * 60)
  await signInAtProvider(page)
  await page.waitForURL(`${url}/`)
  assert.match((await page.textContent('body')) ?? '', /Alice Example/)
  assert.deepEqual(
    events().filter(event => event?.startsWith('sign_in')),
    ['sign_in_restarted', 'sign_in'],
  )

  const bookmark = opened.find(address => address.startsWith(`${provider.issuer}/auth?`)) ?? ''
  const callback = opened.findLast(address => address.startsWith(`${url}/callback?`)) ?? ''
  for (const address of [callback, bookmark]) {
    await page.goto(address)
    assert.equal(page.url(), `${url}/`, 'who is signed in comes home')
  }
  await page.goBack()
  assert.equal(page.url(), `${url}/`)

  await page.context().clearCookies({ name: /menshen/ })
  await page.goto(bookmark)
  assert.equal(page.url(), `${url}/`, 'who is signed in at the provider alone is signed in here')
  assert.match((await page.textContent('body')) ?? '', /Alice Example/)
  assert.ok(!opened.some(address => address.includes('error=')), opened.join('\n'))
  // The pages of the provider ask for fonts of another site.
  assert.deepEqual(
    problems.filter(problem => problem.includes(url)),
    [],
  )
})

const HTML = (_: unknown, response: { setHeader(name: string, value: string): void; end(text: string): void }) => {
  response.setHeader('content-type', 'text/html')
  response.end('<title>application</title>')
}

test('AUTO_SIGN_IN: five tabs opened at once sign in through the provider, and each ends on its page with its fragment', async t => {
  const env = { AUTO_SIGN_IN: 'on', STATE_CHECK: 'bound' }
  const { url, provider } = await setUp(t, { env, answer: HTML })
  const { page, problems } = await openPage(t, browser)
  const tabs = [page]
  for (let n = 1; n < 5; n++) tabs.push(await page.context().newPage())
  const addresses = tabs.map((_, n) => `${url}/page-${n}?a=${n}#part-${n}`)
  await Promise.all(tabs.map((tab, n) => tab.goto(addresses[n] ?? '')))
  assert.deepEqual(
    tabs.map(tab => tab.url()),
    addresses,
  )
  assert.ok(provider.callsTo('authorize').length >= 1)
  assert.deepEqual(problems, [])
})

test('AUTO_SIGN_IN: if the provider always fails, this visit and the next end on the login page after a single attempt', async t => {
  for (const endpoint of ['authorize', 'token', 'userinfo'] as const) {
    const scene = await setUp(t, { env: { AUTO_SIGN_IN: 'on', STATE_CHECK: 'bound' }, answer: HTML })
    const { url, provider } = scene
    const to = `${url}/callback?error=access_denied&state=abc_idp`
    if (endpoint === 'authorize') provider.answer('authorize', { kind: 'redirect', to })
    else provider.answer(endpoint, { kind: 'json', status: 500, body: {} })
    await assertEndsOnLoginPage(t, url, 1)
    assert.equal(provider.callsTo('authorize').length, 1, endpoint)
  }
})

/** Twice; the browser goes to the provider so often. */
async function assertEndsOnLoginPage(t: TestContext, url: string, trips: number): Promise<void> {
  const { page } = await openPage(t, browser)
  const opened = watch(page)
  for (let n = 0; n < 2; n++) {
    await page.goto(`${url}/reports`)
    // A script that would go on by itself has its time.
    await page.waitForLoadState('networkidle')
    assert.equal(new URL(page.url()).pathname, '/login')
    assert.equal(await page.locator('form[action="/login"] button').count(), 1)
  }
  const asked = opened.filter(address => address.includes('/oauth/authorize'))
  assert.ok(asked.length <= trips, opened.join('\n'))
}

test('AUTO_SIGN_IN: a browser that refuses cookies ends on the login page, whatever STATE_CHECK is', async t => {
  for (const STATE_CHECK of ['bound', 'suffix']) {
    const { provider } = await setUp(t, { application: false })
    const BASE_URL = `http://localhost:${await freePort()}`
    const gateway = await openGateway(t, {
      ...{ ...provider.settings, BASE_URL, PORT: String(await freePort()) },
      ...{ AUTO_SIGN_IN: 'on', STATE_CHECK },
    })
    await refuseCookies(t, BASE_URL, gateway.url)
    // With the bound state one attempt and its retry, which the next visit does not repeat.
    await assertEndsOnLoginPage(t, BASE_URL, 2)
  }
})

/** Between the browser and the gateway: what the one would refuse to keep does not reach it. */
async function refuseCookies(t: TestContext, baseUrl: string, gateway: string): Promise<void> {
  const server = createServer((incoming, response) => {
    const { method, url, headers } = incoming
    const sent = forward(gateway + url, { method, headers }, answer => {
      const { 'set-cookie': _, ...kept } = answer.headers
      response.writeHead(answer.statusCode ?? 502, kept)
      answer.pipe(response)
    })
    sent.on('error', () => response.destroy())
    incoming.pipe(sent)
  }).listen(Number(new URL(baseUrl).port), '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
}
