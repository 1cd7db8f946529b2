// Where the applications are: several by path, on a socket of this machine, behind https.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { readSettings } from '../../src/index.ts'
import { createConnections } from '../../src/proxy/connections.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { startUpstream, watch } from '../kit/upstream.ts'
import { dial } from '../kit/websocket.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'

test('only the longest matching path prefix determines the application', async t => {
  const [api, v2, chinese] = [await startUpstream(t), await startUpstream(t), await startUpstream(t)]
  const upstreams = { '/api': api.url, '/api/v2': v2.url, '/报表': chinese.url }
  const scene = await setUp(t, { config: { upstreams } })
  const user = await scene.user()
  const report = '/%E6%8A%A5%E8%A1%A8'
  for (const [path, upstream] of [
    ['/', scene.upstream],
    ['/api', api],
    ['/api/', api],
    ['/api/x?y=/api/v2', api],
    ['/apix', scene.upstream],
    ['/api/v2', v2],
    ['/api/v2/x', v2],
    ['/api/v20', api],
    ['/%61pi/x', api],
    ['/x/api', scene.upstream],
    [report, chinese],
    [`${report}/1`, chinese],
    [report.toLowerCase(), chinese],
  ] as const) {
    const before = upstream.received.length
    assert.equal((await user.get(path)).status, 200, path)
    assert.equal(upstream.received.length, before + 1, path)
  }
})

test('without an application for the path, only the built-in home page is served, and other paths get 404', async t => {
  const api = await startUpstream(t)
  const scene = await setUp(t, { env: { UPSTREAM: '' }, config: { upstreams: { '/api': api.url } } })
  const user = await scene.user()
  assert.equal((await user.get('/api/x')).text, 'hello')
  assert.match((await user.get('/')).text, /<html/)
  assert.equal((await user.get('/other')).status, 404)
})

test('an application on a Unix socket serves pages and WebSockets', async t => {
  const path = join(tempFolder(t), 'app.sock')
  const upstream = await watch(t, createServer().listen(path))
  new WebSocketServer({ server: upstream.server }).on('connection', socket => socket.send('hello'))
  const scene = await setUp(t, { env: { UPSTREAM: `unix:${path}`, UPSTREAM_HOST_HEADER: 'upstream' } })
  const user = await scene.user()
  assert.equal((await user.get('/x')).text, 'hello')
  assert.equal(upstream.last().headers.host, 'localhost')
  const socket = dial(scene, user)
  assert.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.terminate()
})

async function startSecure(t: TestContext, host?: string) {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const names: unknown[] = []
  const server = createSecureServer(filesOf(makeCertificate(folder, 'app', ca, host)))
  server.on('secureConnection', ({ servername }) => names.push(servername))
  server.listen(0, '127.0.0.1')
  const upstream = await watch(t, server)
  new WebSocketServer({ server }).on('connection', socket => socket.send('hello'))
  const { port } = server.address() as AddressInfo
  return { ...upstream, names, ca, url: `https://localhost:${port}`, numericUrl: `https://127.0.0.1:${port}` }
}

test('an https application is trusted only with a certificate of a trusted authority for its own name', async t => {
  const secure = await startSecure(t)
  const unknown = await setUp(t, { env: { UPSTREAM: secure.url } })
  assert.equal((await (await unknown.user()).get('/')).status, 502)
  assert.match(JSON.stringify(unknown.lines), /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE/)

  const stranger = await startSecure(t, 'other.example')
  const mistaken = await setUp(t, { env: { UPSTREAM: stranger.url, UPSTREAM_CA_FILE: stranger.ca.certFile } })
  assert.equal((await (await mistaken.user()).get('/')).status, 502)
  assert.match(JSON.stringify(mistaken.lines), /ERR_TLS_CERT_ALTNAME_INVALID/)
  assert.equal(secure.received.length + stranger.received.length, 0)
})

test('with UPSTREAM_CA_FILE, pages and WebSockets work, and the browser’s Host does not change the TLS server name', async t => {
  const secure = await startSecure(t)
  for (const [UPSTREAM, UPSTREAM_HOST_HEADER, name] of [
    [secure.url, 'upstream', 'localhost'],
    [secure.url, 'browser', 'localhost'],
    [secure.numericUrl, 'browser', false],
  ] as const) {
    const env = { UPSTREAM, UPSTREAM_CA_FILE: secure.ca.certFile, UPSTREAM_HOST_HEADER }
    const scene = await setUp(t, { env })
    const user = await scene.user()
    secure.names.length = 0
    for (const host of ['one.example', 'two.example'])
      assert.equal((await user.get('/', { headers: { host } })).text, 'hello', `${UPSTREAM} ${host}`)
    const socket = dial(scene, user, '/', { host: 'three.example' })
    assert.equal(String((await once(socket, 'message'))[0]), 'hello')
    socket.terminate()
    const expected = UPSTREAM_HOST_HEADER === 'browser' ? 'three.example' : new URL(UPSTREAM).host
    assert.equal(secure.last().headers.host, expected)
    // One connection for the pages, however the browser calls us, and one for the socket.
    assert.deepEqual(secure.names, [name, name])
  }
})

test('returning a connection while all are being closed causes no unhandled rejection', async t => {
  const { url } = await startUpstream(t)
  const connections = createConnections({ origin: url }, '127.0.0.1', readSettings({ UPSTREAM: url }))
  const connection = connections.take()
  const closed = connections.close()
  connections.disableKeepAlive()
  connections.release(connection)
  await closed
  await nextTurn()
})
