// ACCESS_LOG: one line for each request, after it has ended.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { newKey } from '../../src/util/key-form.ts'
import { startInstance } from '../kit/instance.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, refusal, setUpSockets } from '../kit/websocket.ts'
import { openWire, raw, request } from '../proxy/raw.ts'

const ON = { env: { ACCESS_LOG: 'true' } }
const BEHIND_PROXY = { env: { ...ON.env, TRUSTED_PROXIES: '127.0.0.1' } }

interface RequestLine {
  readonly [name: string]: unknown
}

function requestsTo({ lines }: Pick<Scene, 'lines'>, path: string): RequestLine[] {
  return lines
    .filter(({ event }) => event === 'request')
    .map(({ fields }) => ({ ...fields }) as RequestLine)
    .filter(line => line.path === path)
}

/** The response closes a moment after its last byte has gone. */
async function requestTo(scene: Pick<Scene, 'lines'>, path: string, n = 1): Promise<RequestLine> {
  await until(() => requestsTo(scene, path).length >= n)
  return requestsTo(scene, path)[n - 1] ?? {}
}

test('a forwarded request is logged as one line with all its fields and without its query', async t => {
  const scene = await setUp(t, BEHIND_PROXY)
  const user = await scene.user()
  const headers = { 'x-forwarded-for': '10.0.0.7', 'x-request-id': 'from-the-proxy', 'user-agent': 'a browser' }
  const { text } = await user.get('/reports?secret=1', { headers })
  const { bytes, ms, ...line } = await requestTo(scene, '/reports')
  assert.deepEqual(line, {
    requestId: 'from-the-proxy',
    address: '10.0.0.7',
    userAgent: 'a browser',
    method: 'GET',
    path: '/reports',
    status: 200,
    user: 'zhangsan',
    upstream: scene.upstream.url,
  })
  assert.ok(Number(bytes) > text.length && Number(bytes) < 1000, `${bytes} bytes`)
  assert.ok(Number(ms) >= 0)
})

test('log lines have only the first ten characters of a key that was pasted into a path', async t => {
  const scene = await setUp(t, { ...ON, config: { rules: [{ path: '/internal', roles: ['developer'] }] } })
  const user = await scene.user()
  const key = newKey()
  const shown = key.slice(0, 10)
  await user.get(`/_menshen/key/${key}`)
  await user.get(`/internal/${key}-and-more/x`)
  await requestTo(scene, `/_menshen/key/${shown}`)
  await requestTo(scene, `/internal/${shown}/x`)
  const [refused] = scene.lines.filter(({ event }) => event === 'refused')
  assert.equal(Object(refused?.fields).path, `/internal/${shown}/x`)
  await raw(scene.url, request(`GET /a/..%2f${key} HTTP/1.1`))
  await until(() => scene.lines.some(({ event }) => event === 'path_refused'))
  assert.ok(!JSON.stringify(scene.lines).includes(key))
})

test('requests are not logged without ACCESS_LOG', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  await user.get('/reports')
  assert.deepEqual(requestsTo(scene, '/reports'), [])
})

test('each request on a keep-alive connection is logged with its own number of bytes', async t => {
  const scene = await setUp(t, {
    ...ON,
    answer: (asked, response) => response.end('x'.repeat(asked.url?.length ?? 0)),
  })
  const user = await scene.user()
  const wire = await openWire(scene.url)
  const cookie = [...user.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const ask = async (path: string) => {
    const before = wire.seen.length
    wire.socket.write(`GET ${path} HTTP/1.1\r\nhost: app.test\r\ncookie: ${cookie}\r\n\r\n`)
    await until(() => wire.seen.slice(before).endsWith('x'.repeat(path.length)))
    return wire.seen.length - before
  }
  for (let n = 1; n <= 15; n++) {
    const sent = await ask('/same')
    assert.equal((await requestTo(scene, '/same', n)).bytes, sent)
  }
  const sent = await ask(`/${'long'.repeat(500)}`)
  assert.equal((await requestTo(scene, `/${'long'.repeat(500)}`)).bytes, sent)
  wire.socket.destroy()
})

test("requests of visitors, denied requests, Menshen's own paths and unreadable paths are logged too", async t => {
  const rules = [{ path: '/secret', roles: ['developer' as const] }]
  const scene = await setUp(t, { ...ON, config: { rules } })
  const user = await scene.user()
  await scene.visitor().get('/page')
  await user.get('/secret')
  await scene.visitor().get('/%00')
  const { user: nobody, upstream, status } = await requestTo(scene, '/page')
  assert.deepEqual([nobody, upstream, status], [undefined, undefined, 302])
  const refused = await requestTo(scene, '/secret')
  assert.deepEqual([refused.user, refused.status], ['zhangsan', 403])
  assert.equal((await requestTo(scene, '/callback')).status, 302)
  assert.equal((await requestTo(scene, '')).status, 400)
})

test('a client that disconnects before the response is logged with 499, and one that disconnects during it with its status', async t => {
  const scene = await setUp(t, {
    ...ON,
    answer(asked, response) {
      if (asked.url === '/begun') response.write('some')
    },
  })
  const user = await scene.user()
  const left = new AbortController()
  const never = user.get('/never', { signal: left.signal })
  await until(() => scene.upstream.received.some(({ target }) => target === '/never'))
  left.abort()
  await assert.rejects(never)
  assert.equal((await requestTo(scene, '/never')).status, 499)
  const cookie = [...user.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /begun HTTP/1.1', `cookie: ${cookie}`))
  await wire.sees('some')
  assert.deepEqual(requestsTo(scene, '/begun'), [], 'not before it has ended')
  wire.socket.destroy()
  assert.equal((await requestTo(scene, '/begun')).status, 200)
})

test('a WebSocket is logged when it closes, and a refused one at once', async t => {
  const scene = await setUpSockets(t, ON)
  const user = await scene.user()
  assert.equal(await refusal(dial(scene, scene.visitor(), '/refused')), 401)
  assert.equal((await requestTo(scene, '/refused')).status, 401)
  const socket = dial(scene, user, '/chat')
  await once(socket, 'open')
  assert.deepEqual(requestsTo(scene, '/chat'), [])
  socket.close()
  const { status, user: username, upstream } = await requestTo(scene, '/chat')
  assert.deepEqual({ status, username, upstream }, { status: 101, username: 'zhangsan', upstream: scene.upstream.url })
})

test('a hostile user agent or path stays inside one line of JSON, without the query', async t => {
  const menshen = await startInstance({ STORE: 'memory:', ACCESS_LOG: 'true' })
  t.after(() => menshen.stop())
  const hostile = `"}\x85{"event":"sign_in"\t\xe2\x80\xa8`
  for (const path of ['/a%0a%22%7d', '/%22%7d%E2%80%A8'])
    await raw(menshen.url, request(`GET ${path}?token=hidden HTTP/1.1`, `user-agent: ${hostile}`))
  await until(() => menshen.output.filter(line => line.includes('sign_in')).length === 3)
  const lines = menshen.output.map(line => JSON.parse(line))
  const found = lines.filter(({ userAgent }) => userAgent === hostile)
  assert.deepEqual(
    found.map(({ event, path }) => [event, path]),
    [
      ['path_refused', '/a%0a%22%7d'],
      ['request', ''],
      ['request', '/%22%7d%E2%80%A8'],
    ],
  )
  assert.ok(!menshen.output.some(line => line.includes('hidden')))
  assert.ok(!lines.some(({ event }) => event === 'sign_in'))
})
