// Several host names, one sign-in: entering a host, what counts there, and signing out everywhere at once.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { Response } from '../kit/client.ts'
import { setUpOidc } from '../kit/set-up.ts'
import { createBrowser, GRAFANA, PAGE, PORTAL, setUpHosts, WIKI } from '../kit/several-hosts.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const SCRIPT = { accept: 'application/json', 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' }

test('a visitor of a host is redirected to the portal with the requested page and the hash of a nonce', async t => {
  const scene = await setUpHosts(t)
  const browser = scene.browser()
  const answer = await browser.get(`${WIKI}/a%20b/c?x=1&y=%26`)
  assert.equal(answer.status, 302)
  const location = new URL(answer.headers.location ?? '')
  assert.equal(location.origin + location.pathname, `${PORTAL}/_menshen/enter`)
  assert.deepEqual([...location.searchParams.keys()], ['to', 'n'])
  assert.equal(location.searchParams.get('to'), `${WIKI}/a%20b/c?x=1&y=%26`)
  const nonce = browser.cookies(WIKI).get('menshen_entry') ?? ''
  assert.equal(location.searchParams.get('n'), hash('sha256', nonce, 'base64url'))
  assert.match(answer.setCookies.join(), /menshen_entry=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
  assert.deepEqual(scene.wiki.received, [], 'nothing reaches the application')
})

test('a signed-in user reaches the requested page of a host by redirects through the portal, without a click', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const page = await browser.open(`${WIKI}/pages/1?a=b`)
  assert.equal(page.text, 'the wiki')
  assert.deepEqual(
    page.hops.map(hop => new URL(hop).origin + new URL(hop).pathname),
    [`${PORTAL}/_menshen/enter`, `${WIKI}/_menshen/entered`, `${WIKI}/pages/1`],
  )
  assert.equal(page.url, `${WIKI}/pages/1?a=b`)
  assert.notEqual(browser.cookies(WIKI).get('menshen_session'), browser.cookies(PORTAL).get('menshen_session'))
  assert.equal(browser.cookies(WIKI).get('menshen_entry'), undefined, 'the nonce is spent')
  const second = await browser.open(`${GRAFANA}/d`)
  assert.equal(second.text, 'grafana')
  assert.ok(
    scene.lines.some(
      ({ event, fields }) => event === 'host_entered' && fields.host === 'grafana.test' && fields.user === 'zhangsan',
    ),
  )
  assert.equal((await browser.get(`${WIKI}/pages/2`)).text, 'the wiki', 'and stays in the first')
})

test('a host uses the language chosen at the portal until another one is chosen at the host', async t => {
  const scene = await setUpHosts(t, { wikiRules: [{ path: '/', users: ['boss'] }] })
  const browser = await scene.signedIn('lisi')
  await browser.post(`${PORTAL}/_menshen/language`, { language: 'en' })
  assert.match((await browser.open(`${WIKI}/`)).text, /No access/)
  assert.equal(browser.cookies(WIKI).get('menshen_language'), 'en')
  await browser.post(`${GRAFANA}/_menshen/language`, { language: 'zh-CN' })
  await browser.open(`${GRAFANA}/`)
  assert.equal(browser.cookies(GRAFANA).get('menshen_language'), 'zh-CN')
})

test('a visitor signs in at the portal and is redirected back to the requested page of the host', async t => {
  const scene = await setUpHosts(t)
  const browser = scene.browser()
  const enter = await browser.follow(await browser.get(`${WIKI}/deep?x=1`))
  assert.equal(enter.status, 302)
  assert.match(enter.headers.location ?? '', /^\/login\?return=/)
  const login = await browser.follow(enter)
  const signed = /name="return" value="([^"]+)"/.exec(login.text)?.[1] ?? ''
  const started = await browser.post(`${PORTAL}/login`, { return: signed })
  const state = new URL(started.headers.location ?? '').searchParams.get('state')
  const landed = await browser.open(
    `${PORTAL}/callback?code=${scene.provider.codeFor({ username: 'lisi' })}&state=${state}`,
  )
  assert.equal(landed.url, `${WIKI}/deep?x=1`)
  assert.equal(landed.text, 'the wiki')
})

test('the application of a host receives the user and its own host name, but no Menshen cookies', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn('lisi')
  await browser.open(`${WIKI}/page`)
  await browser.get(`${WIKI}/page`, {
    headers: { cookie: `theirs=1; ${[...browser.cookies(WIKI)].map(pair => pair.join('=')).join('; ')}` },
  })
  const { headers } = scene.wiki.last()
  assert.equal(headers['x-forwarded-user'], 'lisi')
  assert.equal(headers['x-forwarded-host'], 'wiki.test')
  assert.equal(headers.host, 'wiki.test')
  assert.equal(headers.cookie, 'theirs=1')
})

test('signing out at a host ends the session at the portal and at every host, but not on other devices', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const elsewhere = await scene.signedIn()
  for (const each of [browser, elsewhere]) for (const host of [WIKI, GRAFANA]) await each.open(`${host}/`)
  const answer = await browser.post(`${GRAFANA}/logout`)
  assert.equal(answer.status, 303)
  assert.equal(answer.headers.location, `${PORTAL}/login`)
  assert.match(answer.setCookies.join(), /menshen_session=; Path=\/; Max-Age=0/)
  assert.equal(answer.headers['clear-site-data'], '"cache"')
  for (const host of [PORTAL, WIKI, GRAFANA]) assert.equal((await browser.get(`${host}/_menshen/me`)).status, 401, host)
  for (const host of [PORTAL, WIKI, GRAFANA])
    assert.equal((await elsewhere.get(`${host}/_menshen/me`)).status, 200, host)
})

test('signing out at the portal ends the session at every host', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  await browser.open(`${WIKI}/`)
  await browser.post(`${PORTAL}/logout`)
  assert.equal((await browser.get(`${WIKI}/`)).status, 302)
  assert.equal((await browser.get(`${WIKI}/_menshen/me`)).status, 401)
})

test('signing out everywhere at a host ends every session of the user', async t => {
  const scene = await setUpHosts(t)
  const [browser, elsewhere] = [await scene.signedIn(), await scene.signedIn()]
  for (const each of [browser, elsewhere]) await each.open(`${WIKI}/`)
  assert.equal((await browser.post(`${WIKI}/_menshen/sign-out-everywhere`)).status, 303)
  for (const each of [browser, elsewhere])
    for (const host of [PORTAL, WIKI]) assert.equal((await each.get(`${host}/_menshen/me`)).status, 401)
})

test('scripts, subresources and forms get 401 at a host instead of a redirect to the portal', async t => {
  const scene = await setUpHosts(t)
  const browser = scene.browser()
  for (const headers of [
    SCRIPT,
    { ...PAGE, 'x-requested-with': 'XMLHttpRequest' },
    { 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors' },
    { authorization: 'Basic eDp5' },
  ]) {
    const answer = await browser.get(`${WIKI}/api`, { headers })
    assert.equal(answer.status, 401, JSON.stringify(headers))
    assert.equal(answer.headers.location, undefined)
  }
  const form = await browser.post(`${WIKI}/save`, { text: 'x' })
  assert.equal(form.status, 401)
  assert.match(form.text, /target="_blank"/)
})

test('sign-in, account and console paths at a host redirect to the portal', async t => {
  const scene = await setUpHosts(t)
  const browser = scene.browser()
  for (const path of [
    '/login',
    '/callback?code=1&state=a_idp',
    '/_menshen/account',
    '/_menshen/console',
    '/_menshen/console/audit?user=x',
  ]) {
    const answer = await browser.get(WIKI + path)
    assert.equal(answer.status, 302, path)
    assert.equal(answer.headers.location, PORTAL + path)
  }
  assert.equal((await browser.post(`${WIKI}/login`)).headers.location, `${PORTAL}/login`)
  assert.equal((await browser.post(`${WIKI}/_menshen/account/end`)).headers.location, `${PORTAL}/_menshen/account`)
  assert.equal((await browser.get(`${WIKI}/_menshen/enter?to=${WIKI}/&n=x`)).status, 404)
  assert.equal((await browser.get(`${PORTAL}/_menshen/entered?code=x`)).status, 404)
})

test('a link from the application to /login returns the user to the application', async t => {
  const scene = await setUpHosts(t, { wikiRules: [{ path: '/', public: true }] })
  const browser = await scene.signedIn()
  const headers = { 'sec-fetch-site': 'same-origin' }
  const answer = await browser.get(`${WIKI}/login?return=/private`, { headers })
  const page = await browser.follow(answer)
  const [, next = ''] = /class="button" href="([^"]+)"/.exec(page.text) ?? []
  const landed = await browser.open(new URL(next.replaceAll('&amp;', '&'), PORTAL).href)
  assert.equal(landed.url, `${WIKI}/private`)
  assert.equal((await browser.get(`${WIKI}/_menshen/me`)).status, 200)
})

test('each host has its own rules, and top-level rules apply only to the portal', async t => {
  const scene = await setUpHosts(t, {
    config: { rules: [{ path: '/', users: ['boss'] }] },
    wikiRules: [
      { path: '/', groups: ['staff'] },
      { path: '/open', public: true },
    ],
  })
  const browser = await scene.signedIn('lisi')
  assert.equal((await browser.open(`${PORTAL}/`)).status, 403)
  assert.equal((await browser.open(`${WIKI}/`)).status, 403)
  assert.equal((await browser.open(`${GRAFANA}/`)).status, 200)
  assert.equal((await scene.browser().get(`${WIKI}/open/x`)).text, 'the wiki')
  assert.equal((await scene.browser().get(`${GRAFANA}/open/x`)).status, 302)
})

test('log lines name the host of a request to one of `hosts`, and no host at the portal', async t => {
  const scene = await setUpHosts(t, {
    env: { ACCESS_LOG: 'true' },
    config: { rules: [{ path: '/x', users: ['boss'] }] },
    wikiRules: [{ path: '/x', users: ['boss'] }],
  })
  const browser = await scene.signedIn('lisi')
  await browser.open(`${PORTAL}/x`)
  await browser.open(`${WIKI}/x`)
  const hostsOf = (code: string) =>
    scene.lines
      .filter(({ event, fields }) => event === code && Object(fields).path === '/x')
      .map(({ fields }) => Object(fields).host)
  const name = new URL(WIKI).host
  assert.deepEqual(hostsOf('refused'), [undefined, name])
  // At the host: the redirect to the portal, and the refusal after the return.
  await until(() => hostsOf('request').length === 3)
  assert.deepEqual(hostsOf('request'), [undefined, name, name])
})

test('an unknown host gets a plain-text 421 on every path except health, ready and metrics', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  for (const host of [
    'evil.test',
    'wiki.test.',
    'wiki.test:8080',
    'portal.test.evil.test',
    'sub.wiki.test',
    'wiki.localhost',
  ])
    for (const path of [
      '/',
      '/login',
      '/_menshen/me',
      '/_menshen/enter',
      '/_menshen/check',
      '/_menshen/assets/page.css',
    ]) {
      const answer = await browser.get(`${PORTAL}${path}`, { headers: { host } })
      assert.equal(answer.status, 421, `${host} ${path}`)
      assert.match(answer.headers['content-type'] ?? '', /^text\/plain/)
      assert.deepEqual(answer.setCookies, [])
      assert.doesNotMatch(answer.text, /menshen|<html/i)
    }
  assert.ok(scene.lines.some(({ event, fields }) => event === 'unknown_host' && fields.host === 'evil.test'))
  for (const path of ['/_menshen/health', '/_menshen/ready', '/_menshen/metrics'])
    assert.equal((await browser.get(`${PORTAL}${path}`, { headers: { host: 'evil.test' } })).status, 200, path)
  for (const host of ['localhost:3000', '127.0.0.1', '[::1]:99', 'PORTAL.test', 'portal.test:80'])
    assert.equal((await browser.get(`${PORTAL}/_menshen/me`, { headers: { host } })).status, 200, host)
  await browser.open(`${WIKI}/`)
  for (const host of ['WIKI.Test', 'wiki.test:80'])
    assert.equal((await browser.get(`${WIKI}/`, { headers: { host } })).text, 'the wiki')
})

test('a host without an application returns 404 to direct requests', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  for (const path of ['/', '/page']) assert.equal((await browser.get(`http://forward.test${path}`)).status, 404)
})

test('with AUTO_SIGN_IN a visitor of a host is redirected to the provider without a click, except after a sign-out', async t => {
  const scene = await setUpHosts(t, { env: { AUTO_SIGN_IN: 'on' } })
  const browser = scene.browser()
  const enter = await browser.follow(await browser.get(`${WIKI}/page`))
  const { origin, searchParams } = new URL(enter.headers.location ?? '')
  assert.equal(origin, scene.provider.url)
  const code = scene.provider.codeFor({ username: 'lisi' })
  const landed = await browser.open(`${PORTAL}/callback?code=${code}&state=${searchParams.get('state')}`)
  assert.equal(landed.url, `${WIKI}/page`)
  const out = await browser.post(`${WIKI}/logout`)
  assert.equal(out.headers.location, `${PORTAL}/login?signed_out`)
  assert.equal((await browser.get(out.headers.location ?? '')).status, 200)
  const again = await browser.open(`${WIKI}/page`)
  assert.equal(again.status, 200)
  assert.ok(again.url.startsWith(`${PORTAL}/login`), again.url)
})

test('an Envoy auth check is about the host in its Host header', async t => {
  const scene = await setUpHosts(t, {
    env: { TRUSTED_PROXIES: '127.0.0.1' },
    wikiRules: [{ path: '/open', public: true }],
  })
  const ask = (host: string, path: string) =>
    scene.visitor().get(`/_menshen/authz${path}`, { headers: { ...PAGE, host } })
  assert.equal((await ask('wiki.test', '/open')).status, 200)
  assert.equal((await ask('grafana.test', '/open')).status, 302)
  const to = new URL((await ask('grafana.test', '/d?x=1')).headers.location ?? '').searchParams.get('to')
  assert.equal(to, `${GRAFANA}/d?x=1`)
  assert.equal((await ask('evil.test', '/open')).status, 421)
})

test('a page of a host that requires a recent sign-in gets one at the portal, and the host uses the new session', async t => {
  const scene = await setUpHosts(t, { wikiRules: [{ path: '/secret', roles: ['*'], maxAge: 60 }] })
  const browser = await scene.signedIn()
  assert.equal((await browser.open(`${WIKI}/secret`)).text, 'the wiki')
  scene.passSeconds(120)
  assert.equal((await browser.get(`${WIKI}/page`)).text, 'the wiki')
  const script = await browser.get(`${WIKI}/secret`, { headers: SCRIPT })
  assert.equal(script.status, 401)
  assert.equal(script.json<{ error: string }>().error, 'step_up_required')
  const comeBack = async (answer: { headers: { location?: string | undefined } }) => {
    const { origin, searchParams } = new URL(answer.headers.location ?? '')
    assert.equal(origin, scene.provider.url)
    const code = scene.provider.codeFor({ username: 'zhangsan' })
    return browser.open(`${PORTAL}/callback?code=${code}&state=${searchParams.get('state')}`)
  }
  const landed = await comeBack(await browser.open(`${WIKI}/secret?x=1`))
  assert.equal(landed.url, `${WIKI}/secret?x=1`)
  assert.equal(landed.text, 'the wiki')

  scene.passSeconds(120)
  const form = await browser.post(`${WIKI}/secret`, { a: 'b' })
  assert.equal(form.status, 401)
  const [, link = ''] = /href="(\/_menshen\/step-up[^"]*)"/.exec(form.text) ?? []
  const done = await comeBack(await browser.open(WIKI + link.replaceAll('&amp;', '&')))
  assert.ok(done.url.startsWith(`${WIKI}/_menshen/step-up`), done.url)
  assert.equal(done.status, 200)
  assert.equal((await browser.post(`${WIKI}/secret`, { a: 'b' })).status, 200)
})

test('signing in again after a failed step-up returns to the page of the host', async t => {
  const wiki = await startUpstream(t, (_, response) => response.end('the wiki'))
  const rules = [{ path: '/vault', roles: ['*'], acr: ['gold'] }]
  const config = { hosts: { 'wiki.test': { upstream: wiki.url, rules } } }
  const { provider, url, now } = await setUpOidc(t, { env: { BASE_URL: PORTAL }, config, application: false })
  const browser = createBrowser(url, now)
  const throughProvider = async ({ headers: { location = '' } }: Pick<Response, 'headers'>) => {
    assert.equal(new URL(location).origin, provider.issuer)
    const { headers } = await fetch(location, { redirect: 'manual' })
    return browser.open(headers.get('location') ?? '')
  }
  const signedIn = (text: string) => /name="return" value="([^"]+)"/.exec(text)?.[1] ?? ''
  await throughProvider(await browser.post(`${PORTAL}/login`))
  const refused = await throughProvider(await browser.open(`${WIKI}/vault/7?x=1&y=%26`))
  assert.deepEqual([refused.status, refused.url], [403, `${WIKI}/vault/7?x=1&y=%26`])

  const button = await browser.post(`${WIKI}/login`, { return: signedIn(refused.text) })
  assert.equal(button.status, 303)
  const page = await browser.open(button.headers.location ?? '')
  assert.equal(page.status, 200)
  assert.equal(new URL(page.url).origin + new URL(page.url).pathname, `${PORTAL}/login`)
  provider.idClaims = { acr: 'gold' }
  const landed = await throughProvider(await browser.post(`${PORTAL}/login`, { return: signedIn(page.text) }))
  assert.deepEqual([landed.text, landed.url], ['the wiki', `${WIKI}/vault/7?x=1&y=%26`])

  const elsewhere = async (form: Record<string, string>, headers = {}) =>
    (await browser.post(`${WIKI}/login`, form, { headers })).headers.location
  for (const path of ['https://evil.test/', '//evil.test', '/vault', `${signedIn(refused.text)}x`])
    assert.equal(await elsewhere({ return: path }), `${PORTAL}/login`, path)
  const foreign = { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }
  assert.equal(await elsewhere({ return: signedIn(refused.text) }, foreign), `${PORTAL}/login`)
})

test('activity at one host keeps the session alive at all hosts, and inactivity ends it at all hosts', async t => {
  const scene = await setUpHosts(t, { env: { SESSION_IDLE_MINUTES: '20' } })
  const browser = await scene.signedIn()
  for (const host of [WIKI, GRAFANA]) await browser.open(`${host}/`)
  for (let n = 0; n < 4; n++) {
    scene.passSeconds(15 * 60)
    assert.equal((await browser.get(`${WIKI}/page`)).text, 'the wiki')
  }
  assert.equal((await browser.get(`${GRAFANA}/_menshen/me`)).status, 200)
  scene.passSeconds(30 * 60)
  for (const host of [WIKI, GRAFANA, PORTAL]) assert.equal((await browser.get(`${host}/_menshen/me`)).status, 401, host)
})

test('a session ended by SESSIONS_PER_USER is no longer valid at any of its hosts', async t => {
  const scene = await setUpHosts(t, { env: { SESSIONS_PER_USER: '1' } })
  const first = await scene.signedIn()
  for (const host of [WIKI, GRAFANA]) await first.open(`${host}/`)
  for (const host of [WIKI, GRAFANA, PORTAL]) assert.equal((await first.get(`${host}/_menshen/me`)).status, 200, host)
  scene.passSeconds(5)
  const second = await scene.signedIn()
  for (const host of [WIKI, GRAFANA]) await second.open(`${host}/`)
  for (const host of [WIKI, GRAFANA, PORTAL]) {
    assert.equal((await first.get(`${host}/_menshen/me`)).status, 401, host)
    assert.equal((await second.get(`${host}/_menshen/me`)).status, 200, host)
  }
})
