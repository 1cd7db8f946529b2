// Several host names in the library: the option `hosts`, for a program that serves them itself.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createMenshen, sendAnswer } from '../../src/index.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { createBrowser, GRAFANA, PAGE, PORTAL, WIKI } from '../kit/several-hosts.ts'

async function setUpProgram(t: TestContext) {
  const provider = await openScriptedProvider(t)
  const menshen = await createMenshen({
    ...provider.options,
    baseUrl: PORTAL,
    rateLimitPerMinute: 0,
    hosts: { 'wiki.test': { rules: [{ path: '/open', public: true }] }, 'grafana.test': {} },
    log: { info() {}, warn() {}, error() {} },
  })
  t.after(() => menshen.close())
  const server = createServer(async (request, response) => {
    const { user, answer } = await menshen.admit(request)
    if (answer) return sendAnswer(response, answer)
    const known = await menshen.session(request)
    response.end(
      `${request.headers.host} ${user?.userInfo.username ?? 'nobody'} ${known?.userInfo.username ?? 'nobody'}`,
    )
  })
  const { url } = await listen(t, server)
  return { menshen, provider, browser: createBrowser(url) }
}

test('a program that serves several hosts has one sign-in for all of them', async t => {
  const { menshen, provider, browser } = await setUpProgram(t)
  assert.equal((await browser.get(`${WIKI}/open`)).text, 'wiki.test nobody nobody')
  assert.equal((await browser.get(`${WIKI}/closed`)).status, 302)
  assert.equal((await browser.get(`${GRAFANA}/open`)).status, 302)
  await browser.signIn(provider, { username: 'lisi' })
  assert.equal((await browser.open(`${WIKI}/closed`)).text, 'wiki.test lisi lisi')
  assert.equal((await browser.open(`${GRAFANA}/`)).text, 'grafana.test lisi lisi')
  const cookie = `menshen_session=${browser.cookies(WIKI).get('menshen_session')}`
  assert.equal((await menshen.session(new Request(`${WIKI}/`, { headers: { cookie } })))?.userInfo.username, 'lisi')
  assert.equal(await menshen.session(new Request(`${GRAFANA}/`, { headers: { cookie } })), undefined)
  assert.equal(await menshen.session(new Request(`${PORTAL}/`, { headers: { cookie } })), undefined)
  assert.ok(await menshen.accessToken({ headers: { host: 'wiki.test', cookie } }))
  assert.equal(await menshen.accessToken({ headers: { host: 'evil.test', cookie } }), undefined)
  await browser.post(`${WIKI}/logout`)
  assert.equal((await browser.get(`${GRAFANA}/`)).status, 302)
})

test('an unconfigured host gets 421, for node:http requests and for Request objects', async t => {
  const { menshen, browser } = await setUpProgram(t)
  assert.equal((await browser.get(`${PORTAL}/`, { headers: { host: 'evil.test' } })).status, 421)
  const { answer } = await menshen.admit(new Request('http://evil.test/', { headers: PAGE }))
  assert.equal(answer?.status, 421)
  assert.equal((await menshen.fetch(new Request('http://evil.test/login', { headers: PAGE })))?.status, 421)
  assert.equal(await menshen.fetch(new Request('http://evil.test/x', { headers: PAGE })), undefined)
  assert.equal(
    (await menshen.fetch(new Request('http://wiki.test/login', { headers: PAGE })))?.headers.get('location'),
    `${PORTAL}/login`,
  )
})
