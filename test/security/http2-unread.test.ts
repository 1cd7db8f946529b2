// Clients by HTTP/2 that open no window: none of their answers leaves, and what waits for them is bounded.

import assert from 'node:assert/strict'
import { type ClientHttp2Session, constants } from 'node:http2'
import test, { type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { makeAuthority, makeCertificate } from '../gateway/certificates.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const CONNECTIONS = 20
const STREAMS = 80
const OF_CONNECTION = 1024 * 1024
const OF_NETWORK = 16 * 1024 * 1024

interface Unread {
  /** The bytes of answers that wait. */
  waiting: number
  reset: number
}

/** Sends all requests, and reads nothing but the heads of their answers. */
async function leaveUnread(session: ClientHttp2Session, path: string): Promise<Unread> {
  const unread = { waiting: 0, reset: 0 }
  const heads = Array.from({ length: STREAMS }, () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const stream = session.request({ ':path': path, accept: 'text/html' })
    stream.on('error', () => {})
    stream.once('response', headers => {
      unread.waiting += Number(headers['content-length'])
      resolve()
    })
    stream.once('close', () => {
      if (stream.rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM) unread.reset++
      resolve()
    })
    return promise
  })
  await Promise.all(heads)
  return unread
}

async function setUpUnread(t: TestContext, env = {}) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  return setUp(t, { application: false, env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, ...env } })
}

test('answers that are not read are bounded for a connection and for an address, and clients that read are served', async t => {
  const scene = await setUpUnread(t)
  let all = 0
  let reset = 0
  for (const path of ['/login', '/_menshen/assets/uplot.js'])
    for (let n = 0; n < CONNECTIONS; n++) {
      const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
      const unread = await leaveUnread(session, path)
      assert.ok(unread.waiting <= OF_CONNECTION, `${unread.waiting} bytes wait for one connection`)
      all += unread.waiting
      reset += unread.reset
      if (path === '/login' && n === 0) assert.ok(unread.waiting > 0)
    }
  assert.ok(all <= OF_NETWORK, `${all} bytes wait for one address`)
  assert.ok(reset > 0)
})

test('what waits ends with its connection, and the address is served again', async t => {
  const scene = await setUpUnread(t)
  for (let n = 0; n < CONNECTIONS; n++) {
    const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
    await leaveUnread(session, '/_menshen/assets/uplot.js')
    session.destroy()
  }
  const reader = await openHttp2(t, scene.url)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(reader, { ':path': '/login' })))
  for (const answer of answers) assert.equal(answer.status, 200)
})

test('the requests of many clients that a trusted proxy brings on one connection are not limited like those of one', async t => {
  const scene = await setUpUnread(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  const unread = await leaveUnread(session, '/_menshen/assets/uplot.js')
  assert.ok(unread.waiting > OF_CONNECTION)
})

test('the answers for an asset share one buffer, however many of them wait', async t => {
  const scene = await setUpUnread(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  await leaveUnread(session, '/_menshen/assets/menshen.css')
  collect()
  const before = process.memoryUsage().arrayBuffers
  const other = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  const { waiting } = await leaveUnread(other, '/_menshen/assets/uplot.js')
  collect()
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < waiting / 2, `${grown} bytes more for ${waiting} that wait`)
})
