// S51: what is too large, too much or too slow is refused, and costs others nothing.

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener, Server } from 'node:http'
import { test } from 'node:test'
import { network } from '../../src/config/networks.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { openWire, raw, statusOf } from '../proxy/raw.ts'
import { readResponses } from './fuzz-responses.ts'

const KB = 1024
const ticket = (n: number) => String(n).padStart(43, 'x')
const RULES = [{ path: '/public', public: true as const }]

const TOO_LARGE: Record<string, string> = {
  'a cookie of 64 KB': `GET /public HTTP/1.1\r\nhost: x\r\ncookie: a=${'x'.repeat(64 * KB)}\r\n\r\n`,
  'many cookies of 64 KB together': `GET /public HTTP/1.1\r\nhost: x\r\n${`cookie: a=${'x'.repeat(KB)}\r\n`.repeat(64)}\r\n`,
  '10,000 headers': `GET /public HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(10_000)}\r\n`,
  'an address of 100 KB': `GET /public?${'x'.repeat(100 * KB)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a header name of 100 KB': `GET /public HTTP/1.1\r\nhost: x\r\n${'x'.repeat(100 * KB)}: 1\r\n\r\n`,
  'a method of 100 KB': `${'X'.repeat(100 * KB)} /public HTTP/1.1\r\nhost: x\r\n\r\n`,
}

/** What came back before the connection ended, in whichever way. */
async function untilCut(url: string, bytes: string): Promise<string> {
  const wire = await openWire(url)
  const closed = new Promise(resolve => wire.socket.once('close', resolve))
  wire.socket.write(bytes, 'latin1')
  await closed
  return wire.seen
}

test('a request that is too large is refused, its connection closed, and the application not called', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  for (const [name, bytes] of Object.entries(TOO_LARGE)) {
    const answer = await untilCut(scene.url, bytes)
    // A connection that is closed before all was sent may lose the answer on its way.
    if (answer !== '') assert.ok([400, 431].includes(statusOf(answer)), `${name}: ${answer.slice(0, 100)}`)
    assert.equal(scene.upstream.received.length, 0, name)
  }
  assert.equal((await scene.visitor().get('/public')).status, 200)
})

test('a request with 2,500 header fields cannot smuggle a second request in its body', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const hidden = 'GET /internal HTTP/1.1\r\nhost: x\r\n\r\n'
  for (const [framing, body] of [
    [`content-length: ${hidden.length}`, hidden],
    ['transfer-encoding: chunked', `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`],
  ]) {
    const filler = 'a:\r\n'.repeat(2500)
    const answer = await raw(
      scene.url,
      `POST /public HTTP/1.1\r\nconnection: close\r\nhost: x\r\n${filler}${framing}\r\n\r\n${body}`,
    )
    assert.ok(answer.split('HTTP/1.1 ').length <= 2, answer)
  }
  assert.ok(scene.upstream.received.every(({ target }) => target === '/public'))
})

test('100 Continue for a pipelined request never interrupts the response to an earlier request', async t => {
  const slow: RequestListener = (request, response) => {
    request.resume()
    setTimeout(() => response.end('hello'), 100)
  }
  const scene = await setUp(t, { config: { rules: RULES }, answer: slow })
  const asks = (method: string, path: string, more = '') => `${method} ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`
  const expecting = 'expect: 100-continue\r\ncontent-length: 2\r\n'
  for (const first of ['/public', '/_menshen/health'])
    for (const path of ['/public', '/login', '/_menshen/nothing', '/page']) {
      const second = `${asks('POST', path, expecting)}ab`
      const last = asks('GET', '/public', 'connection: close\r\n')
      const answer = await raw(scene.url, asks('GET', first) + second + last)
      const { responses, problem } = readResponses(Buffer.from(answer, 'latin1'), false)
      assert.equal(problem, undefined, `${first} ${path}: ${answer}`)
      // Node closes the connection after an answer to somebody who was not told to continue.
      assert.ok(responses.filter(({ status }) => status >= 200).length >= 2, answer)
    }
})

test('a form without a body is treated as an empty form, and the next request on the connection is answered', async t => {
  const scene = await setUp(t)
  const form = 'POST /login HTTP/1.1\r\nhost: x\r\n\r\n'
  const answer = await raw(scene.url, `${form}GET /_menshen/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
  const { responses, problem } = readResponses(Buffer.from(answer, 'latin1'), false)
  assert.equal(problem, undefined, answer)
  assert.deepEqual(
    responses.map(({ status }) => status),
    [303, 200],
  )
})

test('the server limits headers to 20 s and idle connections to at most 75 s, and checks its connections', async t => {
  let server: Server | undefined
  const look = (message: unknown) => {
    server ??= (message as { server: Server }).server
  }
  subscribe('http.server.request.start', look)
  t.after(() => unsubscribe('http.server.request.start', look))
  const scene = await setUp(t)
  await scene.visitor().get('/_menshen/health')
  assert.equal(server?.headersTimeout, 20_000)
  assert.ok(server.keepAliveTimeout > 0 && server.keepAliveTimeout <= 75_000)
  const internals = Object.getOwnPropertySymbols(server).map(symbol => String(symbol))
  assert.ok(
    internals.some(name => name.includes('connectionsCheckingInterval')),
    'connections are looked at',
  )
})

const FORMS = ['login', 'logout', '_menshen/backchannel-logout', '_menshen/sign-out-everywhere', '_menshen/console/end']

test('a body over 16 KiB for a route of Menshen gets 413, and one of exactly 16 KiB does not', async t => {
  const scene = await setUp(t)
  for (const path of FORMS.map(name => `/${name}`)) {
    const user = await scene.user('admin')
    assert.equal((await user.post(path, 'x'.repeat(16 * KB + 1))).status, 413, path)
    assert.equal((await user.get('/_menshen/me')).status, 200, `${path}: the session lives`)
    assert.notEqual((await user.post(path, 'x'.repeat(16 * KB))).status, 413, path)
  }
})

test('requests with unknown tickets are rate limited, and other requests from the same address are not', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '5' }, config: { rules: RULES } })
  const user = await scene.user()
  const guess = (n: number) => scene.visitor().get('/page', { headers: { cookie: `menshen_session=${ticket(n)}` } })
  for (let n = 0; n < 5; n++) assert.equal((await guess(n)).status, 302)
  const refused = await guess(6)
  assert.equal(refused.status, 429)
  assert.match(String(refused.headers['retry-after']), /^\d+$/)
  assert.equal(refused.headers['cache-control'], 'no-store')
  assert.match(refused.text, /<html lang="zh-CN"/)
  assert.match(refused.text, /[\u4e00-\u9fff]{4}/)
  assert.equal((await user.get('/page')).status, 200)
  assert.equal((await scene.visitor().get('/page')).status, 302)
  assert.equal((await scene.visitor().get('/public')).status, 200)
  assert.ok((await scene.user('lisi')).cookies.has('menshen_session'), 'a sign-in of the same address works')
})

test('image requests with the ticket of an ended session do not keep users at the same address from the login page', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '5' } })
  const ask = (n: number, headers: Record<string, string>, path = '/page') =>
    scene.visitor().get(path, { headers: { ...headers, cookie: `menshen_session=${ticket(n)}` } })
  for (const dest of ['image', 'script', 'style', 'font', 'video'])
    for (let n = 0; n < 10; n++) assert.equal((await ask(1, { 'sec-fetch-dest': dest })).status, 302, dest)
  assert.equal((await ask(2, { 'sec-fetch-dest': 'empty' })).status, 401, 'they were not counted')
  for (let n = 0; n < 10; n++) await ask(n, {})
  const script = await ask(3, { 'sec-fetch-dest': 'empty' })
  assert.equal(script.status, 429)
  const { host } = new URL(scene.baseUrl)
  const pages = [
    { host, 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' },
    { accept: 'text/html,*/*;q=0.8' },
    // A service worker has passed it on.
    { host, 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'navigate', accept: 'text/html,*/*;q=0.8' },
  ]
  for (const headers of pages) {
    const answer = await ask(4, headers)
    assert.deepEqual([answer.status, answer.headers.location], [302, '/login'], JSON.stringify(headers))
  }
  assert.equal((await ask(4, pages[0] ?? {}, '/_menshen/account')).headers.location, '/login')
})

test('when sign-ins are rate limited, signed-in users can still open pages and sign out', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '2' } })
  const user = await scene.user()
  for (let n = 0; n < 5; n++) await scene.visitor().post('/login')
  assert.equal((await scene.visitor().post('/login')).status, 429)
  assert.equal((await scene.visitor().get('/callback?code=c&state=a_idp')).status, 429)
  assert.equal((await user.get('/page')).status, 200)
  assert.equal((await user.post('/logout')).status, 303)
})

const NO_PAGE = [
  ...['image', 'iframe', 'frame', 'empty', 'script', 'embed', 'object', 'nonsense', ''].map(dest => ({
    'sec-fetch-dest': dest,
    'sec-fetch-site': 'cross-site',
  })),
  { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' },
  { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' },
]
const PAGE = { 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }

test('a callback that is not a top-level page load gets 403, calls no provider and does not use up the rate limit', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '2' } })
  const visitor = scene.visitor()
  for (const headers of NO_PAGE) {
    for (const query of [`code=${scene.provider.codeFor()}&state=a_idp`, 'error=x', '']) {
      const answer = await visitor.get(`/callback?${query}`, { headers })
      assert.equal(answer.status, 403, JSON.stringify(headers))
      assert.deepEqual(answer.setCookies, [])
    }
  }
  assert.equal(scene.provider.calls.length, 0)
  // Browsers on plain http, and whoever is none, say nothing of what they ask for.
  for (const headers of [PAGE, {}]) {
    const answer = await scene.visitor().get(`/callback?code=${scene.provider.codeFor()}&state=a_idp`, { headers })
    assert.equal(answer.headers.location, '/')
  }
  assert.equal((await visitor.get('/callback', { headers: PAGE })).status, 429)
})

test('an image request for the callback does not use up a bound sign-in attempt', async t => {
  const scene = await setUp(t, { env: { STATE_CHECK: 'bound' } })
  const visitor = scene.visitor()
  const away = new URL(String((await visitor.post('/login')).headers.location))
  const path = `/callback?code=${scene.provider.codeFor()}&state=${away.searchParams.get('state')}`
  assert.equal((await visitor.get(path, { headers: { 'sec-fetch-dest': 'image' } })).status, 403)
  assert.equal((await visitor.get(path, { headers: PAGE })).headers.location, '/')
})

test('POST /login from another site gets 403 and does not use up the rate limit', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '2' } })
  const foreign = [{ origin: 'http://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }]
  for (const headers of [...foreign, ...foreign])
    assert.equal((await scene.visitor().post('/login', '', { headers })).status, 403)
  assert.equal((await scene.visitor().post('/login')).status, 303)
})

test('IPv6 addresses in the same /64 belong to one network, in any notation', () => {
  const same = [
    ...['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2:0:0:0:1', '2001:db8:1:2::'],
    ...['2001:db8:1:2::1.2.3.4', '2001:DB8:1:2::1', '2001:0db8:0001:0002::1', '2001:db8:1:2:3::'],
  ]
  assert.deepEqual([...new Set(same.map(network))], [network(same[0] ?? '')])
  const different = ['2001:db8:1:3::1', '2001:db8:2:2::1', '2001:db9:1:2::1', '::1', '1::', '10.0.0.1', '10.0.0.2']
  assert.equal(new Set([...different, '2001:db8:1:2::1'].map(network)).size, different.length + 1)
  assert.equal(network('1::'), network('1:0:0:0:5:6:7:8'))
})

/** How many of these addresses, each asking once, are still let in when one alone would be allowed twice. */
async function admitted(scene: Awaited<ReturnType<typeof setUp>>, addresses: string[]): Promise<number> {
  const ask = (address: string) => scene.visitor().post('/login', '', { headers: { 'x-forwarded-for': address } })
  let count = 0
  for (const address of addresses) if ((await ask(address)).status === 303) count += 1
  return count
}

const TEN = Array.from({ length: 10 }, (_, n) => n)
const LIMITED = { RATE_LIMIT_PER_MINUTE: '2' }
const BEHIND = { ...LIMITED, TRUSTED_PROXIES: '127.0.0.1' }

test('X-Forwarded-For from an untrusted client does not bypass the rate limit', async t => {
  for (const env of [LIMITED, { ...LIMITED, TRUSTED_PROXIES: '10.0.0.0/8' }])
    assert.equal(
      await admitted(
        await setUp(t, { env }),
        TEN.map(n => `203.0.113.${n}`),
      ),
      2,
    )
})

test('behind a trusted proxy, each IPv4 address and each IPv6 /64 has its own rate limit', async t => {
  assert.equal(
    await admitted(
      await setUp(t, { env: BEHIND }),
      TEN.map(n => `203.0.113.${n}`),
    ),
    10,
  )
  assert.equal(
    await admitted(
      await setUp(t, { env: BEHIND }),
      TEN.map(n => `2001:db8::${n}`),
    ),
    2,
  )
  assert.equal(
    await admitted(
      await setUp(t, { env: BEHIND }),
      TEN.map(n => `2001:db8:0:${n}::1`),
    ),
    10,
  )
})

test('entries that a visitor puts into X-Forwarded-For before the proxy’s own entry are ignored', async t => {
  assert.equal(
    await admitted(
      await setUp(t, { env: BEHIND }),
      TEN.map(n => `198.51.100.${n}, 203.0.113.1`),
    ),
    2,
  )
  assert.equal(
    await admitted(
      await setUp(t, { env: BEHIND }),
      TEN.map(n => `${n}.x, 203.0.113.1, 127.0.0.1`),
    ),
    2,
  )
})

test('ports and IPv4-mapped notations in X-Forwarded-For do not change the client address', async t => {
  const ports = (address: string) => TEN.map(n => `${address}:${4000 + n}`)
  for (const addresses of [
    ports('203.0.113.1'),
    ports('[2001:db8::1]'),
    ['203.0.113.1', '203.0.113.1:1', '203.0.113.1:65535', '::ffff:203.0.113.1'],
    ['203.0.113.1', '0:0:0:0:0:ffff:203.0.113.1', '0000:0000:0000:0000:0000:FFFF:203.0.113.1', '::ffff:cb00:7101'],
    ['[2001:db8::1]', '2001:db8::1', '[2001:db8::2]:443'],
    ports('198.51.100.7:1, 203.0.113.1'),
    // A proxy of ours in front of a proxy of ours.
    TEN.map(n => `203.0.113.1:${n}, 127.0.0.1:${5000 + n}`),
  ])
    assert.equal(await admitted(await setUp(t, { env: BEHIND }), addresses), 2, String(addresses[1]))
  const each = TEN.map(n => `203.0.113.${n}:4711`)
  assert.equal(await admitted(await setUp(t, { env: BEHIND }), each), 10)
})

test('odd or invalid values of X-Forwarded-For from a trusted proxy do not break requests', async t => {
  const scene = await setUp(t, { env: { ...BEHIND, RATE_LIMIT_PER_MINUTE: '1000' } })
  for (const written of [
    'unknown',
    '203.0.113.1:4711',
    '[2001:db8::1]:443',
    '[2001:db8::1]',
    '_hidden',
    '1.2.3',
    ',',
    '::ffff:1.2.3',
    '%00',
    'fe80::1%eth0',
  ]) {
    const headers = { 'x-forwarded-for': written }
    assert.equal((await scene.visitor().post('/login', '', { headers })).status, 303, written)
    assert.equal((await scene.visitor().get('/_menshen/health', { headers })).status, 200, written)
  }
})

test('callbacks beyond PROVIDER_PARALLEL_CALLS wait, and those beyond the queue of 500 fail without a call to the provider', async t => {
  const [parallel, waiting, tooMany] = [2, 500, 7]
  const env = { PROVIDER_PARALLEL_CALLS: String(parallel), PROVIDER_TIMEOUT_MS: '120000' }
  const { provider, visitor, user } = await setUp(t, { env })
  const signedIn = await user()
  const before = provider.callsTo('token').length
  const letGo = provider.hold('token')
  const locations: unknown[] = []
  const callbacks = Array.from({ length: parallel + waiting + tooMany }, async () => {
    const { headers } = await visitor().get(`/callback?code=${provider.codeFor()}&state=a_idp`)
    locations.push(headers.location)
  })
  await until(() => locations.length >= tooMany)
  await provider.called('token', before + parallel)
  assert.deepEqual(locations, Array(tooMany).fill('/login?error=token_error'))
  assert.equal(provider.callsTo('token').length - before, parallel, 'the others wait')
  assert.equal((await signedIn.get('/')).status, 200, 'who is in is held up by none of them')
  assert.match(cookieOf(signedIn), /menshen_session/)
  letGo()
  await Promise.all(callbacks)
  assert.equal(locations.filter(location => location === '/').length, parallel + waiting)
  assert.equal(provider.callsTo('token').length - before, parallel + waiting)
})
