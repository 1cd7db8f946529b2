// DEVICE_BOUND_SESSIONS with a real browser: it registers its key, proves itself, and the copied ticket is worth nothing.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { startBindingBrowser } from '../kit/browser.ts'
import { BOUND_COOKIE, TICKET_COOKIE } from '../kit/device.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

test('Chromium binds a session to its device, and the ticket is valid nowhere else', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  const scene = await setUp(t, {
    now: Date.now(),
    env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, DEVICE_BOUND_SESSIONS: 'on' },
    answer: (_request, response) => void response.setHeader('content-type', 'text/html').end('<h1>hello</h1>'),
  })
  const browser = await startBindingBrowser(readFileSync(certFile, 'utf8'))
  t.after(() => browser.close())
  const context = await browser.newContext()
  const page = await context.newPage()
  const cookie = async (name: string) => (await context.cookies()).find(cookie => cookie.name === name)?.value
  const shown = () => page.textContent('h1')

  // As from the provider, a page of another site: the browser registers its key without the ticket.
  const callback = `${scene.url}/callback?code=${scene.provider.codeFor({ username: 'zhangsan' })}&state=abc_idp`
  await page.goto(`data:text/html,<a href="${callback.replace('&', '&amp;')}">sign in</a>`)
  await page.click('a')
  await until(async () => (await cookie(BOUND_COOKIE)) !== undefined)
  assert.equal(await shown(), 'hello', 'the first page does not wait for the registration')
  const first = await cookie(BOUND_COOKIE)
  await page.reload()
  assert.equal(await shown(), 'hello')

  const stolen = { headers: { cookie: `${TICKET_COOKIE}=${await cookie(TICKET_COOKIE)}`, accept: 'application/json' } }
  const thief = scene.visitor()
  await until(async () => (await thief.get('/', stolen)).status === 401)
  assert.equal((await thief.get('/_menshen/me', stolen)).status, 401)

  // As if ten minutes had passed.
  await context.clearCookies({ name: BOUND_COOKIE })
  await page.goto(`${scene.url}/later`)
  assert.deepEqual([await shown(), page.url()], ['hello', `${scene.url}/later`])
  const second = await cookie(BOUND_COOKIE)
  assert.ok(second !== undefined && second !== first, 'the browser has proved itself for another cookie')
  assert.equal((await thief.get('/', stolen)).status, 401)

  // A link of another site.
  await context.clearCookies({ name: BOUND_COOKIE })
  await page.goto(`data:text/html,<a href="${scene.url}/linked?a=1%23part">link</a>`)
  await page.click('a')
  await page.waitForURL(`${scene.url}/linked?a=1#part`)
  assert.equal(await shown(), 'hello')
})
