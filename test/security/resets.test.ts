// S78: limits count by the address that a connection had, whatever becomes of it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { serve as serveHono } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { menshen as forExpress } from '../../src/adapters/express.ts'
import { menshen as forHono } from '../../src/adapters/hono.ts'
import { createMenshen } from '../../src/index.ts'
import { createClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const LIMIT = 20
const RESETS = 200
const CALLBACK = 'GET /callback?code=made-up&state=a_idp HTTP/1.1\r\nhost: localhost\r\n\r\n'

/** The request and the reset arrive together: whoever reads the request finds no peer any more. */
async function sendAndReset(url: string): Promise<void> {
  const { port, protocol } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  const closed = new Promise(resolve => socket.once('close', resolve))
  if (protocol === 'https:') {
    const secure = connectTls({ socket, rejectUnauthorized: false })
    secure.on('error', () => {})
    await once(secure, 'secureConnect')
    secure.write(CALLBACK, () => socket.resetAndDestroy())
  } else {
    await once(socket, 'connect')
    socket.write(CALLBACK)
    socket.resetAndDestroy()
  }
  await closed
}

async function resetMany(url: string): Promise<void> {
  for (let n = 0; n < RESETS; n += 20) await Promise.all(Array.from({ length: 20 }, () => sendAndReset(url)))
  // Whatever was read of them has been answered by now.
  for (let n = 0; n < 20; n++) await createClient(url).get('/_menshen/health')
}

const env = { RATE_LIMIT_PER_MINUTE: String(LIMIT) }

test('callbacks whose connection is reset immediately still obey the rate limit', async t => {
  const scene = await setUp(t, { env })
  await resetMany(scene.url)
  assert.ok(scene.provider.calls.length <= LIMIT, `${scene.provider.calls.length} reached the provider`)
  assert.ok(!scene.lines.some(({ event }) => event === 'address_unknown'))
})

test('callbacks over TLS whose connection is reset immediately still obey the rate limit', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'server', makeAuthority(folder))
  const scene = await setUp(t, { env: { ...env, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } })
  await resetMany(scene.url)
  assert.ok(scene.provider.calls.length <= LIMIT, `${scene.provider.calls.length} reached the provider`)
})

async function openLibrary(t: TestContext) {
  const provider = await openScriptedProvider(t)
  const menshen = await createMenshen({
    ...provider.options,
    baseUrl: 'http://localhost:3000',
    rateLimitPerMinute: LIMIT,
    log: { info() {}, warn() {}, error() {} },
  })
  t.after(() => menshen.close())
  return { provider, menshen }
}

type Library = Awaited<ReturnType<typeof openLibrary>>['menshen']

for (const [name, handlerOf] of Object.entries({
  'node:http': (menshen: Library) => createServer(menshen.listener),
  Express: (menshen: Library) => createServer(express().use(forExpress(menshen))),
}))
  test(`in an application’s own ${name} server, callbacks whose connection is reset immediately still obey the rate limit`, async t => {
    const { provider, menshen } = await openLibrary(t)
    await resetMany((await listen(t, handlerOf(menshen))).url)
    assert.ok(provider.calls.length <= LIMIT, `${provider.calls.length} reached the provider`)
  })

test('in an application’s own Hono server, callbacks whose connection is reset immediately still obey the rate limit', async t => {
  const { provider, menshen } = await openLibrary(t)
  const app = new Hono().use(forHono(menshen))
  const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await once(server, 'listening')
  t.after(() => server.close())
  await resetMany(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  assert.ok(provider.calls.length <= LIMIT, `${provider.calls.length} reached the provider`)
})
