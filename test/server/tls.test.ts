// Https without a proxy in front.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import test, { type TestContext } from 'node:test'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import type { Report } from '../../src/events.ts'
import { type CertificateFiles, readCertificate, watchCertificate } from '../../src/server/serve.ts'
import { cookieOf } from '../kit/client.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { setUpSockets } from '../kit/websocket.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

/** More than a connection takes when nobody reads it. */
const LARGE = Buffer.alloc(32 * 1024 * 1024)

/** The name on the certificate there, if anybody answers in this way. */
async function greet(url: string, options: ConnectionOptions): Promise<unknown> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', ...options })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return subject.CN
}

function prepare(t: Parameters<typeof tempFolder>[0]) {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const first = makeCertificate(folder, 'first', ca)
  return { folder, ca, first, env: { TLS_CERT_FILE: first.certFile, TLS_KEY_FILE: first.keyFile } }
}

test('pages and WebSockets are served over https, without Strict-Transport-Security on localhost', async t => {
  const { env, ca } = prepare(t)
  const scene = await setUpSockets(t, { env })
  assert.match(scene.baseUrl, /^https:/)
  const login = await scene.visitor().get('/login')
  assert.equal(login.headers['strict-transport-security'], undefined)
  const user = await scene.user()
  assert.match(cookieOf(user), /^__Host-menshen_session=/)
  const page = await user.get('/')
  assert.equal(page.text, 'hello')
  assert.equal(scene.upstream.last().headers['x-forwarded-proto'], 'https')
  const socket = new WebSocket(scene.url.replace('https', 'wss'), {
    headers: { cookie: cookieOf(user) },
    ca: readFileSync(ca.certFile),
  })
  await once(socket, 'open')
  socket.send('hello')
  assert.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.terminate()
})

test('TLS 1.2 and 1.3 are accepted, and older versions are rejected', async t => {
  const { env, ca } = prepare(t)
  const scene = await setUp(t, { env })
  const trust = { ca: readFileSync(ca.certFile) }
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    assert.equal(await greet(scene.url, { ...trust, minVersion: version, maxVersion: version }), 'first')
  const old = { ...trust, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  await assert.rejects(greet(scene.url, old), /protocol version|no protocols available/i)
})

test('a changed certificate is used without a restart, open connections stay, and a broken one changes nothing', async t => {
  const { folder, env, ca, first } = prepare(t)
  const scene = await setUp(t, { env })
  const shown = () => greet(scene.url, { ca: readFileSync(ca.certFile) })
  const cookie = cookieOf(await scene.user())
  const before = await openHttp2(t, scene.url)
  assert.equal(await shown(), 'first')
  writeFileSync(first.certFile, 'broken')
  await until(() => scene.lines.some(({ level }) => level === 'error'))
  assert.equal(await shown(), 'first')
  const second = makeCertificate(folder, 'second', ca)
  cpSync(second.keyFile, first.keyFile)
  cpSync(second.certFile, first.certFile)
  await until(async () => (await shown()) === 'second')
  const after = await openHttp2(t, scene.url)
  for (const [session, name] of [
    [before, 'first'],
    [after, 'second'],
  ] as const) {
    assert.equal((session.socket as TLSSocket).getPeerCertificate().subject.CN, name)
    assert.equal((await ask(session, { ':path': '/', cookie })).text, 'hello')
  }
})

/** Watches the files with a clock that the test moves. */
function watch(t: TestContext, files: CertificateFiles, graceMs?: number) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const reported: string[] = []
  const report: Report = code => void reported.push(code)
  const watching = watchCertificate(createServer(readCertificate(files)), { files, report, graceMs })
  t.after(() => watching.stop())
  return { reported, look: () => t.mock.timers.tick(2000) }
}

test('a certificate whose key is written a moment later is used with it, and causes no error', t => {
  const { folder, ca, first } = prepare(t)
  const second = makeCertificate(folder, 'second', ca)
  const { reported, look } = watch(t, first)
  cpSync(second.certFile, first.certFile)
  look()
  look()
  assert.deepEqual(reported, [])
  cpSync(second.keyFile, first.keyFile)
  look()
  look()
  assert.deepEqual(reported, ['certificate_reloaded'])
})

test('a certificate whose key does not follow is reported once', t => {
  const { folder, ca, first } = prepare(t)
  const second = makeCertificate(folder, 'second', ca)
  const { reported, look } = watch(t, first, 0)
  cpSync(second.certFile, first.certFile)
  for (let n = 0; n < 5; n++) look()
  assert.deepEqual(reported, ['certificate_refused'])
})

test('a client that reads nothing of a response over https is disconnected', async t => {
  const { env } = prepare(t)
  const scene = await setUp(t, {
    env: { ...env, CLIENT_TIMEOUT_MS: '600' },
    answer: (_request, response) => void response.end(LARGE),
  })
  const cookie = cookieOf(await scene.user())
  const socket = connect({ port: Number(new URL(scene.url).port), host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.write(`GET / HTTP/1.1\r\nhost: a\r\ncookie: ${cookie}\r\n\r\n`)
  await until(() => scene.upstream.sockets.size === 1)
  await until(() => scene.upstream.sockets.size === 0)
  await until(() => scene.lines.some(({ event }) => event === 'client_cut_off'))
})
