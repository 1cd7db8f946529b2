// Forward-auth with several host names: which host a question is about, and whom we believe about it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { PAGE, PORTAL, setUpHosts, WIKI } from '../kit/several-hosts.ts'

const FORWARD = 'http://forward.test'
const TRUSTED = { TRUSTED_PROXIES: '127.0.0.1' }
const RULES = {
  'forward.test': {
    rules: [
      { path: '/secret', users: ['boss'] },
      { path: '/open', public: true as const },
    ],
  },
}

const nginx = (host: string, uri: string) => ({
  'x-original-host': host,
  'x-original-uri': uri,
  'x-original-method': 'GET',
})
const caddy = (host: string, uri: string) => ({
  'x-forwarded-host': host,
  'x-forwarded-uri': uri,
  'x-forwarded-method': 'GET',
})

test('auth checks use the host that the proxy names in a header, regardless of their own Host', async t => {
  const scene = await setUpHosts(t, { env: TRUSTED, config: { hosts: RULES } })
  const browser = await scene.signedIn()
  const cookiesOf = (origin: string) => [...browser.cookies(origin)].map(pair => pair.join('=')).join('; ')
  const ask = (path: string, headers: object) =>
    scene.visitor().get(`/_menshen/${path}`, { headers: { ...PAGE, host: 'menshen:3000', ...headers } })

  const hop = await ask('forward', caddy('forward.test', '/page?a=1'))
  assert.equal(hop.status, 302)
  const address = new URL(hop.headers.location ?? '')
  assert.equal(address.origin + address.pathname, `${PORTAL}/_menshen/enter`)
  assert.equal(address.searchParams.get('to'), `${FORWARD}/page?a=1`)
  assert.match(hop.setCookies.join(), /^menshen_entry=/)
  assert.equal((await ask('check', nginx('forward.test', '/page'))).status, 401)

  await browser.open(`${FORWARD}/login?x`).catch(() => {})
  const entered = await browser.follow(await browser.get(hop.headers.location ?? ''), {
    headers: { cookie: hop.setCookies.join().split(';')[0] },
  })
  assert.equal(entered.headers.location, '/page?a=1')
  const cookie = cookiesOf(FORWARD)
  for (const [path, name] of [
    ['check', nginx],
    ['forward', caddy],
  ] as const) {
    const answer = await ask(path, { ...name('forward.test', '/page'), cookie })
    assert.equal(answer.status, 200, path)
    assert.equal(answer.headers['x-forwarded-user'], 'zhangsan')
    assert.equal(
      decodeJwt(String(answer.headers['x-menshen-assertion'])).aud,
      FORWARD,
      'an assertion for this host alone',
    )
    assert.equal((await ask(path, { ...name('forward.test', '/secret'), cookie })).status, 403)
    assert.equal((await ask(path, { ...name('FORWARD.test:80', '/open') })).status, 200)
    // A ticket counts at its own host.
    assert.notEqual((await ask(path, { ...name('wiki.test', '/'), cookie })).status, 200)
    assert.notEqual((await ask(path, { ...name('portal.test', '/'), cookie })).status, 200)
    assert.equal((await ask(path, { ...name('portal.test', '/'), cookie: cookiesOf(PORTAL) })).status, 200)
    for (const unknown of ['evil.test', 'forward.test, evil.test', 'evil.test, forward.test', ''])
      assert.equal((await ask(path, { ...name(unknown, '/open'), cookie })).status, 421, `${path} ${unknown}`)
  }
  assert.equal(
    (await ask('forward', { ...nginx('forward.test', '/open') })).status,
    421,
    'the header of the other kind',
  )
  assert.equal((await ask('check', {})).status, 421)
})

test('an auth check that names no host or a loopback name gets 421 instead of the portal’s rules', async t => {
  const hosts = { 'forward.test': {} }
  const scene = await setUpHosts(t, { env: TRUSTED, config: { hosts, rules: [{ path: '/', public: true }] } })
  const ask = (path: string, headers: object) => scene.visitor().get(`/_menshen/${path}`, { headers: { ...headers } })
  // As nginx sends it without X-Original-Host, and as any client can name a host to a proxy that serves it by default.
  const [uri, address] = [{ 'x-original-uri': '/page' }, { 'x-forwarded-uri': '/page' }]
  assert.equal((await ask('check', { host: '127.0.0.1:3000', ...uri })).status, 421)
  assert.equal((await ask('check', { host: 'menshen', 'x-original-host': 'localhost', ...uri })).status, 421)
  assert.equal((await ask('forward', { host: '127.0.0.1:3000', ...address })).status, 421)
  assert.equal((await ask('forward', { 'x-forwarded-host': '[::1]:80', ...address })).status, 421)
  assert.equal((await ask('authz/page', { host: 'localhost' })).status, 421)
  assert.equal((await ask('check', nginx('portal.test', '/page'))).status, 200)
  assert.equal((await ask('authz/page', { host: 'portal.test' })).status, 200)
  const named = scene.lines.filter(({ event }) => event === 'unknown_host').map(({ fields }) => fields.host)
  assert.deepEqual(named, ['127.0.0.1:3000', 'localhost', '127.0.0.1:3000', '[::1]:80', 'localhost'])
})

test('only a trusted proxy can name the host of an auth check', async t => {
  const scene = await setUpHosts(t, { config: { hosts: RULES } })
  const ask = (path: string, headers: object) =>
    scene.visitor().get(`/_menshen/${path}`, { headers: { ...PAGE, ...headers } })
  assert.equal((await ask('check', { host: 'evil.test', ...nginx('forward.test', '/open') })).status, 421)
  assert.equal((await ask('forward', { host: 'evil.test', ...caddy('forward.test', '/open') })).status, 421)
  assert.notEqual((await ask('forward', { host: 'wiki.test', ...caddy('forward.test', '/open') })).status, 200)
  // The session of the page that asks, at its own host.
  const browser = await scene.signedIn()
  await browser.open(`${WIKI}/`)
  assert.equal(
    (await browser.get(`${WIKI}/_menshen/check`, { headers: { 'x-original-host': 'evil.test' } })).status,
    200,
  )
})
