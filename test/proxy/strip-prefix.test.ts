// An application that does not see its prefix: what it is asked, and what becomes of its redirects and cookies.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test, { type TestContext } from 'node:test'
import { checkConfig } from '../../src/config/file.ts'
import { MenshenError } from '../../src/errors.ts'
import { type Config, readSettings } from '../../src/index.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'

interface Answer {
  location?: string
  cookies?: string[]
}

async function setUpPrefix(t: TestContext, more: Omit<Config, 'upstreams'> = {}, prefix = '/grafana') {
  const answer: Answer = {}
  const grafana = await startUpstream(t, (request, response) => {
    request.resume()
    if (answer.location !== undefined) response.setHeader('location', answer.location)
    if (answer.cookies) response.setHeader('set-cookie', answer.cookies)
    response.writeHead(answer.location === undefined ? 200 : 302).end('grafana')
  })
  const scene = await setUp(t, {
    config: { ...more, upstreams: { [prefix]: { url: grafana.url, stripPrefix: true } } },
  })
  return { scene, grafana, answer, user: await scene.user() }
}

test('an application with stripPrefix receives paths without its prefix, and the prefix in X-Forwarded-Prefix', async t => {
  const { grafana, scene, user } = await setUpPrefix(t)
  for (const [path, expected] of [
    ['/grafana/x', '/x'],
    ['/grafana', '/'],
    ['/grafana/', '/'],
    ['/grafana?a=/grafana', '/?a=/grafana'],
    ['/grafana/grafana/x', '/grafana/x'],
    ['/grafana/a%20b;c=1/%2f?q=%2f', '/a%20b;c=1/%2f?q=%2f'],
    ['/grafana//evil.example/x', '/evil.example/x'],
    ['/grafana///x//y', '/x//y'],
    ['/%67rafana/%78', '/%78'],
    ['/%67%72afana', '/'],
  ] as const) {
    assert.equal(
      (await user.get(path, { headers: { 'x-forwarded-prefix': '/evil', x_forwarded_prefix: '/evil' } })).text,
      'grafana',
      path,
    )
    assert.equal(grafana.last().target, expected, path)
    const told = grafana.last().lines.filter(([name]) => /forwarded.prefix/.test(name))
    assert.deepEqual(told, [['x-forwarded-prefix', '/grafana']])
  }
  const asked = grafana.received.length
  await user.get('/other', { headers: { 'x-forwarded-prefix': '/evil' } })
  assert.equal(scene.upstream.last().headers['x-forwarded-prefix'], undefined)
  assert.equal(grafana.received.length, asked)
})

test('a path that only some servers read as the prefix reaches neither application', async t => {
  const { grafana, scene, user } = await setUpPrefix(t, { rules: [{ path: '/grafana', roles: ['*'] }] })
  for (const path of [
    ...['/grafana%2Fx', '/grafana;a=1/x', '/grafana%5Cx', '/x%2F..%2Fgrafana/x'],
    ...['/grafana%252Fx', '/grafana/../x', '/grafana/..%2fx', '/grafana/%2e%2e/x'],
  ]) {
    const { status } = await user.get(path)
    assert.ok(status === 400 || status === 403, `${path} ${status}`)
  }
  assert.equal(grafana.received.length + scene.upstream.received.length, 0)
})

test('rules apply to the path with the prefix', async t => {
  const { grafana, user } = await setUpPrefix(t, {
    rules: [
      { path: '/grafana/admin', roles: ['developer'] },
      { path: '/secret', roles: ['developer'] },
    ],
  })
  for (const path of ['/grafana/admin', '/grafana//admin/x', '/grafana/%61dmin'])
    assert.equal((await user.get(path)).status, 403, path)
  assert.equal(grafana.received.length, 0)
  assert.equal((await user.get('/grafana/secret')).status, 200)
})

test('a prefix with several segments and non-ASCII letters is stripped from requests and added to redirects', async t => {
  const { grafana, user, answer } = await setUpPrefix(t, {}, '/apps/报表')
  const sent = '/apps/%E6%8A%A5%E8%A1%A8'
  answer.location = '/login'
  const { headers } = await user.get(`${sent}/x/y`)
  assert.equal(grafana.last().target, '/x/y')
  assert.equal(grafana.last().headers['x-forwarded-prefix'], sent)
  assert.equal(headers.location, `${sent}/login`)
})

test('redirects of an application with stripPrefix get its prefix, and those that already have it are unchanged', async t => {
  const { grafana, scene, user, answer } = await setUpPrefix(t)
  const own = scene.baseUrl
  const { host } = new URL(own)
  for (const [given = '', expected = '', path = '/grafana/a/b'] of [
    ['/x', '/grafana/x'],
    ['/', '/grafana/'],
    ['/?a', '/grafana/?a'],
    ['/grafanax', '/grafana/grafanax'],
    ['/grafana', '/grafana'],
    ['/grafana/x', '/grafana/x'],
    ['/grafana?x', '/grafana?x'],
    ['/_menshen/account', '/_menshen/account'],
    [`${grafana.url}/x`, `${own}/grafana/x`],
    [`${grafana.url}/grafana/x`, `${own}/grafana/x`],
    [grafana.url, `${own}/grafana/`],
    [`${own}/x`, `${own}/grafana/x`],
    [`//${host}/x`, `${own}/grafana/x`],
    [`${own}/grafana/x`, `${own}/grafana/x`],
    [`${scene.upstream.url}/x`, `${own}/x`],
    ['https://elsewhere.example/x', 'https://elsewhere.example/x'],
    ['//elsewhere.example/x', '//elsewhere.example/x'],
    ['../x', '../x'],
    ['?a', '?a'],
    ['mailto:a@example.com', 'mailto:a@example.com'],
    ['login', '/grafana/login', '/grafana'],
    ['login', 'login', '/grafana/'],
  ]) {
    answer.location = given
    assert.equal((await user.get(path)).headers.location, expected, given)
  }
})

test('cookies of an application with stripPrefix are limited to its prefix, except __Host- cookies', async t => {
  const { scene, user, answer } = await setUpPrefix(t)
  for (const [given = '', expected = '', path = '/grafana/a'] of [
    ['a=1; Path=/; HttpOnly', 'a=1; Path=/grafana; HttpOnly'],
    ['a=1; path=/x/', 'a=1; path=/grafana/x/'],
    ['a=/; Path=/grafana', 'a=/; Path=/grafana'],
    ['a=1; Path=/grafanax', 'a=1; Path=/grafana/grafanax'],
    ['a=1;PATH = /x;Path=/y', 'a=1;PATH = /grafana/x;Path=/grafana/y'],
    ['a=path=/x', 'a=path=/x'],
    ['a=1', 'a=1; Path=/grafana', '/grafana'],
    ['a=1; Path=', 'a=1; Path=; Path=/grafana', '/grafana'],
    ['__Host-a=1; Path=/; Secure', '__Host-a=1; Path=/; Secure'],
  ]) {
    answer.cookies = [given]
    const { headers } = await scene.visitor().get(path, { headers: { cookie: cookieOf(user) } })
    assert.deepEqual(headers['set-cookie'], [expected], given)
  }
})

test('a WebSocket to an application with stripPrefix is opened without the prefix', async t => {
  const inner = await setUpSockets(t)
  inner.sockets.on('headers', lines => lines.push('Set-Cookie: a=1; Path=/'))
  const gateway = await setUp(t, {
    config: { upstreams: { '/live': { url: inner.upstream.url, stripPrefix: true, host: 'upstream' } } },
  })
  const socket = dial(gateway, await gateway.user(), '/live/feed?x', {
    origin: gateway.baseUrl,
    referer: `${gateway.baseUrl}/live/page`,
  })
  const [[answer]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
  socket.terminate()
  const { target, headers } = inner.upstream.last()
  assert.equal(target, '/feed?x')
  assert.deepEqual([headers.origin, headers.referer], [inner.upstream.url, `${inner.upstream.url}/page`])
  assert.deepEqual(answer.headers['set-cookie'], ['a=1; Path=/live'])
})

test('each mistake in an upstream is refused with a one-sentence error', () => {
  const url = 'http://127.0.0.1:1'
  const host = 'expected "browser", "upstream" or the name of a host, for example "app.example.com".'
  for (const [upstreams, sentence] of [
    [
      { '/': { url, stripPrefix: true } },
      'upstreams./.stripPrefix: there is no prefix to strip from /; leave stripPrefix out.',
    ],
    [{ '/a': { url, stripPrefix: 'yes' } }, 'upstreams./a.stripPrefix: expected true or false, not text.'],
    [{ '/a': { url, stripprefix: true } }, 'upstreams./a: there is no "stripprefix"; did you mean stripPrefix?'],
    ...['Browser', 'http://a.example', 'a b', 'a.example/x', '', 'a:99999', 'a@b', '127.1', '-', '*'].map(
      name => [{ '/a': { url, host: name } }, `upstreams./a.host: ${host}`] as const,
    ),
    [
      { '/a': { url: 'a' } },
      'upstreams./a.url: expected an http, https or h2c address without a path, or unix:/path/of/socket, for example "http://127.0.0.1:8080".',
    ],
    [
      { '/a': 'a' },
      'upstreams./a: expected an http, https or h2c address without a path, or unix:/path/of/socket, for example "http://127.0.0.1:8080".',
    ],
    [{ '/a': 1 }, 'upstreams./a: expected text or an object.'],
  ] as const)
    assert.throws(
      () => checkConfig({ upstreams }, 'test', 'config'),
      (error: unknown) => {
        assert.ok(error instanceof MenshenError)
        assert.match(error.message, new RegExp(RegExp.escape(`test: ${sentence}`)))
        return true
      },
    )
  for (const name of ['browser', 'upstream', 'name.example', 'localhost:3000', '10.0.0.1', 'a-b.c'])
    checkConfig({ upstreams: { '/a': { url, host: name } } }, 'test', 'config')
  assert.equal(readSettings({ UPSTREAM: url }).UPSTREAM_HOST_HEADER, 'browser')
})
