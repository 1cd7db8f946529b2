// The example for HAProxy, with HAProxy itself.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { WebSocketServer } from 'ws'
import { readExample } from '../../examples/claims.ts'
import { type Client, cookieOf } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { testAttacks } from './attacks.ts'
import { testJourneys } from './journeys.ts'
import { testHttps, testOwnAddress } from './options.ts'
import { type FrontProxy, openBehind } from './proxies.ts'
import { testSockets } from './sockets.ts'
import { testTransfers } from './transfers.ts'

const proxy: FrontProxy = {
  program: 'haproxy',
  mode: 'forward-auth',
  config: readExample('haproxy/haproxy.cfg'),
  replace: ({ proxy, menshen, application }) => [
    ['bind :80', `bind 127.0.0.1:${proxy}`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
    ['/etc/haproxy/', fileURLToPath(new URL('../../examples/haproxy/', import.meta.url))],
  ],
  prepare: (_folder, config) => ['-db', '-f', config],
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
testTransfers(proxy)
testHttps(proxy, /#(bind :443)/g, 'bind :80')
const asked = await freePort()
testOwnAddress(proxy, /#(bind 127|source)/g, [
  ['\nbackend menshen\n', '\nlisten menshen\n'],
  ['bind 127.0.0.1:3002', `bind 127.0.0.1:${asked}`],
  ['lua.menshen http://127.0.0.1:3000', `lua.menshen http://127.0.0.1:${asked}`],
])

test('behind haproxy a page of another site cannot open a WebSocket over HTTP/2', async t => {
  const { scene, url, user, client } = await openBehind(t, proxy)
  const sockets = new WebSocketServer({ server: scene.upstream.server })
  sockets.on('connection', socket => socket.on('message', (data, binary) => socket.send(data, { binary })))
  const [common, visitor] = [await user(), client()]
  const session = connect(url)
  t.after(() => session.destroy())
  await once(session, 'remoteSettings')
  assert.equal(session.remoteSettings.enableConnectProtocol, true)
  /** RFC 8441. */
  const open = async (who: Client, path: string, origin: string) => {
    const stream = session.request({
      ...{ ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http', ':path': path },
      ...{ ':authority': new URL(url).host, origin, cookie: cookieOf(who), 'sec-websocket-version': '13' },
    })
    t.after(() => stream.destroy())
    const [headers] = await once(stream, 'response')
    return { status: Number(headers[':status']), stream }
  }
  for (const path of ['/', '/public']) assert.equal((await open(common, path, 'https://evil.example')).status, 403)
  assert.equal((await open(visitor, '/public', 'https://evil.example')).status, 403)
  assert.equal((await open(visitor, '/', url)).status, 401)
  assert.equal((await open(common, '/internal', url)).status, 403)
  assert.deepEqual(scene.upstream.received, [])
  const { status, stream } = await open(common, '/chat', url)
  assert.equal(status, 200)
  // One masked frame of text: a page of ours talks with the application as before.
  stream.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
  assert.deepEqual((await once(stream, 'data'))[0], Buffer.from([0x81, 0x02, 0x68, 0x69]))
})
