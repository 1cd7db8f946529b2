// What of a message is for one connection only, and what is a claim that only we may make.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { raw, request, startRawUpstream, statusOf } from './raw.ts'

test('hop-by-hop headers of a request are not forwarded', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const lines = [
    'Connection: X-One, x-two',
    'CONNECTION: x_three',
    'X-One: 1',
    'X_Two: 2',
    'x-three: 3',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic Zm9vOmJhcg==',
    'Proxy-Authenticate: Basic',
    'TE: trailers, deflate',
    'Trailer: x-checksum',
    'Upgrade: h2c',
    'X-Kept: yes',
  ]
  await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`, ...lines))
  const received = scene.upstream.last().lines
  const names = new Set(received.map(([name]) => name))
  for (const name of [
    ...['x-one', 'x_two', 'x-three', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate'],
    ...['trailer', 'upgrade', 'transfer-encoding'],
  ])
    assert.ok(!names.has(name), name)
  assert.deepEqual(
    received.filter(([name]) => name === 'te' || name === 'x-kept'),
    [
      ['x-kept', 'yes'],
      ['te', 'trailers'],
    ],
  )
})

test('hop-by-hop headers of a response are not forwarded', async t => {
  const upstream = await startRawUpstream(t, socket => {
    const lines = [
      'HTTP/1.1 200 OK',
      'Connection: keep-alive, X-One',
      'X-One: 1',
      'Keep-Alive: timeout=77',
      'Proxy-Authenticate: Basic',
      'Proxy-Connection: keep-alive',
      'X-Kept: yes',
      'X-Twice: a',
      'X-Twice: b',
      'Content-Length: 2',
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\nok`)
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  const answer = await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`))
  assert.match(answer, /\r\nx-kept: yes\r\n/i)
  assert.match(answer, /\r\nx-twice: a\r\nx-twice: b\r\n/i)
  assert.doesNotMatch(answer, /x-one|timeout=77|proxy-/i)
})

test('forwarding headers describe the connection to Menshen, plus the client address from a trusted proxy', async t => {
  const claims = {
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-port': '443',
    'x-forwarded-server': 'evil',
    'x-forwarded-uri': '/internal',
    'x-forwarded-prefix': '/internal',
    'x-real-ip': '203.0.113.7',
    'x-original-url': '/internal',
    'x-original-uri': '/internal',
    'x-rewrite-url': '/internal',
    forwarded: 'for=203.0.113.7',
  }
  for (const [trusted, chain] of [
    ['10.0.0.0/8', '127.0.0.1'],
    ['127.0.0.1', '203.0.113.7, 127.0.0.1'],
  ]) {
    const scene = await setUp(t, { env: { TRUSTED_PROXIES: trusted ?? '' } })
    const user = await scene.user()
    await user.get('/', { headers: claims })
    const { host } = new URL(scene.baseUrl)
    const { headers } = scene.upstream.last()
    const ours = { 'x-forwarded-for': chain, 'x-forwarded-proto': 'http', 'x-forwarded-host': host }
    for (const name of Object.keys(claims))
      assert.equal(headers[name], (ours as Record<string, string>)[name], `${name} of ${trusted}`)
  }
})

test('the application receives the browser’s Host unless its own or a fixed name is configured', async t => {
  const browser = 'browser.example:81'
  for (const [setting, host, expected] of [
    [undefined, undefined, browser],
    ['browser', undefined, browser],
    ['upstream', undefined, 'application'],
    ['upstream', 'browser', browser],
    ['browser', 'upstream', 'application'],
    [undefined, 'name.example', 'name.example'],
    [undefined, 'name.example:8080', 'name.example:8080'],
  ] as const) {
    const upstream = await startUpstream(t)
    const scene = await setUp(t, {
      env: setting ? { UPSTREAM_HOST_HEADER: setting } : {},
      config: { upstreams: { '/app': { url: upstream.url, ...(host && { host }) } } },
    })
    await (await scene.user()).get('/app', { headers: { host: browser } })
    const hosts = upstream.last().lines.filter(([name]) => name === 'host')
    assert.deepEqual(hosts, [['host', expected === 'application' ? new URL(upstream.url).host : expected]])
  }
})

test('an application that receives its own Host also receives its own origin in Origin and Referer, with WebSockets too', async t => {
  for (const host of ['upstream', 'browser', 'name.example'] as const) {
    const scene = await setUpSockets(t)
    const { url } = scene.upstream
    const gateway = await setUp(t, { config: { upstreams: { '/': { url, host } } } })
    const user = await gateway.user()
    const own = gateway.baseUrl
    for (const [origin, referer] of [
      [own, `${own}/form?a=${own}/`],
      [own, own],
      ['https://evil.example', `https://evil.example/?${own}/`],
      ['null', `${own}.evil.example/`],
      [`${own}0`, `${own}0/x`],
      [`${own}@evil.example`, `${own}@evil.example/x`],
    ] as const) {
      await user.get('/', { headers: { origin, referer } })
      const { headers } = scene.upstream.last()
      const mapped = (address: string) =>
        host === 'upstream' && (address === own || address.startsWith(`${own}/`)) ? address.replace(own, url) : address
      assert.deepEqual([headers.origin, headers.referer], [mapped(origin), mapped(referer)], host)
    }
    const socket = dial(gateway, user, '/', { origin: own })
    await once(socket, 'open')
    socket.terminate()
    assert.equal(scene.upstream.last().headers.origin, host === 'upstream' ? url : own)
  }
})

test('neither the request target nor the Host header can change where a request is sent', async t => {
  const trap = await startRawUpstream(t, socket => socket.end())
  const scene = await setUp(t)
  const user = await scene.user()
  const cookie = `cookie: ${cookieOf(user)}`
  for (const target of [`${trap.url}/`, `//${new URL(trap.url).host}/`, `@${new URL(trap.url).host}/`, '*'])
    assert.equal(statusOf(await raw(scene.url, request(`GET ${target} HTTP/1.1`, cookie))), 400, target)
  const tunnel = await raw(scene.url, request(`CONNECT ${new URL(trap.url).host} HTTP/1.1`, cookie))
  assert.equal(tunnel, '')
  assert.equal(scene.upstream.received.length, 0)
  for (const host of [new URL(trap.url).host, '169.254.169.254', 'localhost', 'a:b:c'])
    await raw(scene.url, `GET /x HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${cookie}\r\n\r\n`)
  assert.deepEqual(new Set(scene.upstream.received.map(({ target }) => target)), new Set(['/x']))
  assert.equal(trap.heads.length, 0)
})

test('a request of ambiguous length gets 400 and does not reach the application', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const smuggled = 'GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n'
  for (const framing of [
    ['content-length: 5', 'transfer-encoding: chunked'],
    ['transfer-encoding: chunked', 'transfer-encoding: identity'],
    ['transfer-encoding: xchunked'],
    ['transfer-encoding : chunked'],
    ['transfer-encoding: \x0bchunked'],
    ['content-length: 5', 'content-length: 6'],
    ['content-length: +5'],
    ['content-length: 0x5'],
    ['content-length: 5, 5'],
  ]) {
    const head = request('POST /framing HTTP/1.1', `cookie: ${cookieOf(user)}`, ...framing)
    const answer = await raw(scene.url, `${head}0\r\n\r\n${smuggled}`)
    assert.equal(statusOf(answer), 400, String(framing))
  }
  assert.deepEqual(scene.upstream.received, [])
})
