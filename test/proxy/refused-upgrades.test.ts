// Upgrades that are refused, by us or by the application: what the client is told, and that nothing of them stays.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import { inParallel } from '../../bench/in-parallel.ts'
import { cookieOf } from '../kit/client.ts'
import { openLibrary } from '../kit/library.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { openWire, raw, startRawUpstream, statusOf } from './raw.ts'

const REFUSED = 1000
const AT_ONCE = 250

function upgrade(path: string, ...headers: string[]): string {
  const lines = [`GET ${path} HTTP/1.1`, 'host: a', 'connection: upgrade', 'upgrade: websocket', ...headers]
  return `${[...lines, 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='].join('\r\n')}\r\n\r\n`
}

/** What this process holds open. */
function open(kind: string): number {
  return process.getActiveResourcesInfo().filter(name => name === kind).length
}

/** Refused, it goes on sending, does not close, and waits for the server to do so. */
async function linger({ url }: Scene, bytes: string): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket: Socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  socket.on('error', () => {}).resume()
  socket.write(bytes)
  await once(socket, 'data')
  const late = setInterval(() => socket.write('late'), 100)
  await new Promise(resolve => socket.once('close', resolve))
  clearInterval(late)
}

test(`${REFUSED} refused upgrades with late bytes leave no connection, timer or listener behind`, async t => {
  const scene = await setUp(t)
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const before = { sockets: open('TCPSocketWrap'), timers: open('Timeout') }
  const refused = [upgrade('/'), upgrade('/login'), upgrade('/', 'origin: https://evil.example')]
  await inParallel(Array(REFUSED).keys(), AT_ONCE, n => linger(scene, refused[n % refused.length] ?? ''))
  await until(() => open('TCPSocketWrap') <= before.sockets && open('Timeout') <= before.timers)
  // Node warns of an emitter that collects them.
  assert.deepEqual(
    warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'),
    [],
  )
})

/** With our own server, and with one of node:http that knows nothing of our options. */
const SERVERS = {
  'the command': async (t: TestContext) => await setUp(t),
  async 'the library'(t: TestContext) {
    const { provider, upstream } = await setUp(t)
    return openLibrary(t, { ...provider.settings, UPSTREAM: upstream.url })
  },
}

for (const [name, open] of Object.entries(SERVERS))
  test(`${name} refuses an upgrade with a body, and keeps serving after clients reset such connections`, async t => {
    const { url } = await open(t)
    const bodies = ['content-length: 10', 'transfer-encoding: chunked']
    for (const body of bodies) assert.equal(statusOf(await raw(url, upgrade('/', body))), 400, body)
    // A handshake of some clients says that there is none.
    assert.equal(statusOf(await raw(url, upgrade('/', 'content-length: 0'))), 401)
    await inParallel(Array(60).keys(), 20, async n => {
      const wire = await openWire(url)
      wire.socket.write(upgrade('/', bodies[n % 2] ?? ''))
      if (n % 3) await wire.sees('400')
      wire.socket.resetAndDestroy()
    })
    assert.equal(statusOf(await raw(url, 'GET /_menshen/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')), 200)
  })

test('upgrades that the application answers with 200 leave no connection or timer behind', async t => {
  const app = await startRawUpstream(t, socket => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'))
  const scene = await setUp(t, { env: { UPSTREAM: app.url } })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const before = { sockets: open('TCPSocketWrap'), timers: open('Timeout') }
  await inParallel(Array(100).keys(), AT_ONCE, () => linger(scene, upgrade('/', cookie)))
  await until(() => app.sockets.size === 0)
  await until(() => open('TCPSocketWrap') <= before.sockets && open('Timeout') <= before.timers)
})

test('an upgrade that the application answers with an endless 200 response is closed', async t => {
  const app = await startRawUpstream(t, socket => socket.write('HTTP/1.1 200 OK\r\n\r\nhello'))
  const scene = await setUp(t, { env: { UPSTREAM: app.url } })
  const answer = await raw(scene.url, upgrade('/', `cookie: ${cookieOf(await scene.user())}`))
  assert.match(answer, /hello$/)
  await until(() => app.sockets.size === 0)
})

test('a response of the application other than an upgrade arrives with its status, Location, harmless headers and body', async t => {
  const lines = [
    'HTTP/1.1 302 Found',
    'location: /elsewhere?x=1',
    'set-cookie: a=1',
    'set-cookie: menshen_session=evil',
    'x-reason: moved',
    'keep-alive: timeout=5',
    'transfer-encoding: chunked',
  ]
  const app = await startRawUpstream(t, socket => socket.write(`${lines.join('\r\n')}\r\n\r\n4\r\nover\r\n0\r\n\r\n`))
  const config = { rules: [{ path: '/open', public: true as const }] }
  const scene = await setUp(t, { env: { UPSTREAM: app.url }, config })
  for (const asking of [upgrade('/', `cookie: ${cookieOf(await scene.user())}`), upgrade('/open')]) {
    const answer = await raw(scene.url, asking)
    assert.equal(statusOf(answer), 302)
    const [head = '', body] = answer.split('\r\n\r\n')
    assert.match(head, /^location: \/elsewhere\?x=1$/im)
    assert.match(head, /^x-reason: moved$/im)
    assert.match(head, /^set-cookie: a=1$/im)
    assert.match(head, /^connection: close$/im)
    assert.doesNotMatch(head, /evil|keep-alive|transfer-encoding/i)
    assert.equal(body, 'over')
  }
})

test('an upgraded connection that only the client has ended is closed', async t => {
  const app = await startRawUpstream(t, socket => {
    socket.allowHalfOpen = true
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  })
  const scene = await setUp(t, { env: { UPSTREAM: app.url } })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const before = open('TCPSocketWrap')
  const wire = await openWire(scene.url)
  wire.socket.write(upgrade('/', cookie))
  await wire.sees('101 ')
  wire.socket.end()
  // The application cannot see that nobody is there any more until it writes.
  await until(() => open('TCPSocketWrap') <= before + app.sockets.size)
})
