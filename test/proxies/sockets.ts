// WebSockets through a proxy, the same through each.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test, { type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { cookieOf } from '../kit/client.ts'
import { dial, refusal } from '../kit/websocket.ts'
import { IDENTITY } from '../proxy/claim-headers.ts'
import { raw, request } from '../proxy/raw.ts'
import { type FrontProxy, openBehind } from './proxies.ts'

async function openSocketsBehind(t: TestContext, proxy: FrontProxy) {
  const behind = await openBehind(t, proxy)
  const sockets = new WebSocketServer({ server: behind.scene.upstream.server })
  sockets.on('connection', socket => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
  return behind
}

export function testSockets(proxy: FrontProxy): void {
  const { program, name = program } = proxy

  test(`behind ${name} a signed-in user talks with the application over a WebSocket`, async t => {
    const { scene, url, user } = await openSocketsBehind(t, proxy)
    const client = await user()
    const names = IDENTITY.flatMap(name => [name, name.replaceAll('-', '_'), name.replaceAll('-', '.')])
    const forged = names.map(name => [name, 'forged'])
    const cookie = `__Host-menshen_session=secret; ${cookieOf(client)}; app=1`
    const socket = dial({ url }, client, '/chat?room=1', { ...Object.fromEntries(forged), cookie, origin: url })
    await once(socket, 'open')
    socket.send('你好')
    assert.equal(String((await once(socket, 'message'))[0]), '你好')
    const large = Buffer.alloc(1024 * 1024, 'menshen')
    socket.send(large)
    assert.deepEqual((await once(socket, 'message'))[0], large)
    const { target, headers, lines } = scene.upstream.last()
    assert.equal(target, '/chat?room=1')
    assert.equal(headers['x-forwarded-user'], 'zhangsan')
    assert.equal(headers.cookie, 'app=1')
    assert.deepEqual(
      lines.filter(([, value]) => value.includes('forged')),
      [],
    )
    socket.close(4000, 'done')
    assert.deepEqual((await once(socket, 'close')).map(String), ['4000', 'done'])
  })

  test(`behind ${name} a user without access to a page cannot open a WebSocket there`, async t => {
    const { scene, url, user, client } = await openSocketsBehind(t, proxy)
    const [common, admin, visitor] = [await user(), await user('admin'), client()]
    assert.equal(await refusal(dial({ url }, visitor, '/')), 401)
    assert.equal(await refusal(dial({ url }, common, '/internal')), 403)
    assert.equal(await refusal(dial({ url }, common, '/', { origin: 'https://evil.example' })), 403)
    assert.equal(await refusal(dial({ url }, visitor, '/public', { origin: 'https://evil.example' })), 403)
    for (const path of ['/_menshen/authz/internal', '/_menshen/check', '/_menshen/forward'])
      assert.equal(await refusal(dial({ url }, admin, path)), 404)
    assert.notEqual(await refusal(dial({ url }, admin, '/_menshen/console')), 101)
    assert.deepEqual(scene.upstream.received, [])
    for (const [who, path] of [
      [admin, '/internal'],
      [visitor, '/public'],
    ] as const) {
      const socket = dial({ url }, who, path)
      await once(socket, 'open')
      socket.terminate()
    }
  })

  test(`behind ${name} an upgrade to another protocol is not forwarded to the application`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    const lines = ['connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__']
    const asked = request('GET / HTTP/1.1', `cookie: ${cookieOf(await user())}`, ...lines)
    await raw(url, asked.replace('app.test', new URL(url).host))
    for (const { headers } of scene.upstream.received) assert.equal(headers.upgrade, undefined)
  })
}
