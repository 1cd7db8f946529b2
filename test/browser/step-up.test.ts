// Signing in again because a rule wants it, in a real browser: a page, a form that is not lost, and a provider that never does it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import type { Config } from '../../src/index.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { setUpOidc } from '../kit/set-up.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

const config: Config = {
  rules: [
    { path: '/pay', roles: ['*'], maxAge: 300 },
    { path: '/forms', methods: ['POST'], roles: ['*'], maxAge: 300 },
  ],
}

test('step-up returns to the page, a form is sent after a sign-in in a new tab, and a provider that ignores it causes no loop', async t => {
  const sent: string[] = []
  const { provider, ...gateway } = await setUpOidc(t, {
    config,
    now: Date.now(),
    async answer(request, response) {
      let body = ''
      for await (const chunk of request) body += chunk
      if (request.method === 'POST') sent.push(body)
      response.setHeader('content-type', 'text/html')
      response.end(
        '<title>application</title><form method="post" action="/forms/1"><input name="text"><button>Send</button></form>',
      )
    },
  })
  const authenticate = () => {
    provider.idClaims = { auth_time: Math.floor(gateway.now() / 1000) }
  }
  authenticate()
  const { page } = await openPage(t, browser)
  await page.goto(`${gateway.url}/forms/1`)
  await page.getByRole('button', { name: /登录/ }).click()
  await page.waitForURL(`${gateway.url}/forms/1`)
  await page.fill('input[name=text]', 'long text')

  gateway.passSeconds(400)
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('heading', { name: '请重新登录' }).waitFor()
  assert.deepEqual(sent, [])
  authenticate()
  const [tab] = await Promise.all([page.waitForEvent('popup'), page.getByRole('link', { name: '重新登录' }).click()])
  await tab.getByRole('heading', { name: '已重新登录' }).waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  assert.deepEqual(sent, ['text=long+text'])

  gateway.passSeconds(400)
  authenticate()
  const back = await page.goto(`${gateway.url}/pay?x=1`)
  assert.deepEqual([back?.status(), page.url()], [200, `${gateway.url}/pay?x=1`])

  // The provider does not ask again: its auth_time stays as it was.
  gateway.passSeconds(400)
  const before = provider.callsTo('/authorize').length
  const refused = await page.goto(`${gateway.url}/pay`)
  assert.deepEqual([refused?.status(), page.url()], [403, `${gateway.url}/pay`])
  await page.reload()
  assert.equal(provider.callsTo('/authorize').length, before + 1)
})
