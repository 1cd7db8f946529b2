// An application that is down, slow, cut off or talks nonsense: the user learns it, the log names the cause, all else goes on.

import assert from 'node:assert/strict'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { raw, request, startRawUpstream, statusOf } from './raw.ts'

const JSON_PLEASE = { headers: { accept: 'application/json' } }

function causes({ lines }: Scene): unknown[] {
  const failures = lines.filter(({ event }) => event === 'upstream_failed' || event === 'upstream_head_too_large')
  return failures.map(({ fields }) => (fields as { reason?: unknown }).reason)
}

test('an application that is down gives 502, as a page for browsers and as JSON for scripts', async t => {
  const scene = await setUp(t, { env: { UPSTREAM: 'http://127.0.0.1:1' } })
  const user = await scene.user()
  const page = await user.get('/')
  assert.equal(page.status, 502)
  assert.match(page.text, /应用暂时无法访问/)
  assert.equal(page.headers['cache-control'], 'no-store')
  const answer = await user.get('/', JSON_PLEASE)
  assert.equal(answer.status, 502)
  assert.equal(answer.json<{ error: string }>().error, 'bad_gateway')
  assert.equal((await user.post('/', 'x'.repeat(100_000))).status, 502)
  assert.deepEqual(causes(scene), ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'])
  const [failed] = scene.lines.filter(({ event }) => event === 'upstream_failed')
  assert.partialDeepStrictEqual(failed?.fields, { upstream: 'http://127.0.0.1:1' })
})

test('the page for a temporary failure has a retry link to the same address and never elsewhere', async t => {
  const scene = await setUp(t, { env: { UPSTREAM: 'http://127.0.0.1:1' } })
  const user = await scene.user()
  const retry = (text: string) => /<a class="button" href="([^"]*)">重试/.exec(text)?.[1]
  assert.equal(
    retry((await user.get('/a/%E4%B8%AD?b=1&c="><script>')).text),
    '/a/%E4%B8%AD?b=1&amp;c=%22%3E%3Cscript%3E',
  )
  assert.equal(retry((await user.get('/')).text), '/')
  assert.equal(retry((await user.get('/a?//evil.example')).text), '/a?//evil.example')
  assert.equal(retry((await user.post('/a', 'x')).text), undefined, 'nothing that changes something')
  const { text } = await user.get('/_menshen/nothing')
  assert.equal(retry(text), undefined, 'nothing that will stay as it is')
})

test('an application that is too slow gives 504, as a page for browsers and as JSON for scripts', async t => {
  const scene = await setUp(t, { env: { UPSTREAM_HEADERS_TIMEOUT_MS: '200' }, answer: () => {} })
  const user = await scene.user()
  const page = await user.get('/')
  assert.equal(page.status, 504)
  assert.match(page.text, /应用响应超时/)
  assert.equal((await user.get('/', JSON_PLEASE)).json<{ error: string }>().error, 'gateway_timeout')
  assert.deepEqual(causes(scene), ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT'])
})

test('a response that pauses for too long is cut off and does not look complete', async t => {
  const scene = await setUp(t, {
    env: { UPSTREAM_IDLE_TIMEOUT_MS: '200' },
    answer: (_request, response) => void response.write('some'),
  })
  const answer = await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(await scene.user())}`))
  assert.match(answer, /some\r\n$/)
  assert.deepEqual(causes(scene), ['UND_ERR_BODY_TIMEOUT'])
})

test('an invalid response of the application gives 502', async t => {
  const nonsense = [
    'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
    'HTTP/1.1 999999 What\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    `HTTP/1.1 200 OK\r\nx-large: ${'x'.repeat(100_000)}\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nx-control: a\x01b\r\ncontent-length: 0\r\n\r\n',
    '\x00\x01\x02\xff',
    '',
  ]
  const upstream = await startRawUpstream(t, (socket, head) => {
    const index = Number(/^GET \/(\d+) /.exec(head)?.[1])
    socket.end(nonsense[index] ?? '', 'latin1')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  for (const index of nonsense.keys()) {
    assert.equal((await user.get(`/${index}`)).status, 502, JSON.stringify(nonsense[index]?.slice(0, 60)))
    scene.passSeconds(10)
  }
  assert.equal(causes(scene).length, nonsense.length)
})

test('a response that is cut off in its body is cut off for the browser too', async t => {
  const heads = {
    length: 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf',
    chunked: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n',
    chunk: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhalf',
  }
  const upstream = await startRawUpstream(t, (socket, head) => {
    socket.end(heads[/^GET \/(\w+) /.exec(head)?.[1] as keyof typeof heads])
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  for (const path of Object.keys(heads)) {
    const answer = await raw(scene.url, request(`GET /${path} HTTP/1.1`, `cookie: ${cookieOf(user)}`))
    assert.match(answer, /half/)
    assert.doesNotMatch(answer, /\r\n0\r\n\r\n$/, path)
    await assert.rejects(user.get(`/${path}`), /aborted|ECONNRESET/)
  }
  assert.deepEqual(causes(scene), Array(6).fill('UND_ERR_SOCKET'))
  assert.match(JSON.stringify(scene.lines), /"user":"zhangsan".*"path":"\/chunked"/)
})

test('a response without a length ends with its connection and arrives complete', async t => {
  const upstream = await startRawUpstream(t, socket => socket.end('HTTP/1.0 200 OK\r\n\r\nall of it'))
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  assert.equal((await (await scene.user()).get('/')).text, 'all of it')
})

test('a kept-alive connection that the application just closed does not fail a GET, and a POST is never sent twice', async t => {
  // Each connection answers once, promises to stay, and closes when the next request comes.
  const upstream = await startRawUpstream(t, (socket, head) => {
    if (served.has(socket)) return void socket.destroy()
    served.add(socket)
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n${head.slice(0, 4)}`)
  })
  const served = new WeakSet<object>()
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url, UPSTREAM_CONNECTIONS: '1' } })
  const user = await scene.user()
  assert.equal((await user.get('/')).status, 200)
  assert.equal((await user.get('/')).status, 200)
  assert.equal(upstream.heads.length, 3)
  assert.deepEqual(causes(scene), [])

  assert.equal((await user.post('/', 'body')).status, 502)
  assert.equal(upstream.heads.filter(head => head.startsWith('POST')).length, 1)
  assert.equal((await user.request({ method: 'DELETE', path: '/' })).status, 200)
  assert.equal((await user.request({ method: 'DELETE', path: '/' })).status, 502)
  assert.equal(upstream.heads.filter(head => head.startsWith('DELETE')).length, 2)
})

test('a GET is sent at most twice to an application that never answers', async t => {
  const upstream = await startRawUpstream(t, socket => socket.destroy())
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  assert.equal((await (await scene.user()).get('/')).status, 502)
  assert.ok(upstream.heads.length <= 2)
})

test('each of 200 parallel requests of several users gets its own response, even when others are aborted', async t => {
  const scene = await setUp(t, {
    env: { UPSTREAM_CONNECTIONS: '2' },
    answer: ({ url, headers }, response) =>
      void setTimeout(() => response.end(`${url} of ${headers['x-forwarded-user']}`), Math.random() * 5),
  })
  const names = ['zhangsan', 'lisi', 'wangwu', 'zhaoliu']
  const users = await Promise.all(names.map(name => scene.user(name)))
  const [user] = users
  assert.ok(user)
  const asking = Array.from({ length: 200 }, async (_, i) => {
    const patience = i % 3 === 0 ? { signal: AbortSignal.timeout(i % 7) } : {}
    const answer = await users[i % users.length]?.get(`/${i}`, patience).catch(() => undefined)
    if (answer) assert.equal(answer.text, `/${i} of ${names[i % names.length]}`)
    return answer?.status
  })
  const statuses = await Promise.all(asking)
  assert.ok(statuses.filter(status => status === 200).length >= 100)
  assert.deepEqual(causes(scene), [])
  assert.equal(statusOf(await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`))), 200)
})
