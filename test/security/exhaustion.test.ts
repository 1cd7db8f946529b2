// S57, S58: hundreds of slow clients, an application that hangs and thousands who leave: under the default settings, others get
// their pages, and nothing stays behind.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { WebSocketServer } from 'ws'
import { inParallel } from '../../bench/in-parallel.ts'
import { type Instance, type SignedInUser, setUpInstances, signedIn } from '../kit/instance.ts'
import { requireLinux } from '../kit/requirements.ts'
import { scrape } from '../kit/scrape.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { sendLarge } from '../proxy/large-answer.ts'

/** More than UPSTREAM_CONNECTIONS is by default. */
const EACH = 300
const LARGE = 16 * 1024 * 1024
const LEAVING = 3000
/** Nearly as much as a request may have: what is left behind of each is soon more than the process may use. */
const LONG_HEADER = 'x'.repeat(15_000)
const AT_ONCE = 500

const application: RequestListener = (request, response) => {
  if (request.url === '/large') sendLarge(response, LARGE)
  else if (request.url === '/events')
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  else if (request.url === '/hung') request.resume()
  else request.resume().once('end', () => response.end('hello'))
}

async function open(t: TestContext, env: Record<string, string> = {}) {
  const upstream = await startUpstream(t, application)
  new WebSocketServer({ server: upstream.server })
  const { provider, start } = await setUpInstances(t, {
    STORE: 'memory:',
    UPSTREAM: upstream.url,
    LOG_LEVEL: 'error',
    ...env,
  })
  const menshen = await start()
  const sockets: Socket[] = []
  const hangUp = () => {
    for (const socket of sockets.splice(0)) socket.destroy()
  }
  t.after(hangUp)
  return {
    hangUp,
    upstream,
    menshen,
    slow: await signedIn(menshen, provider, 'slow'),
    other: await signedIn(menshen, provider, 'other'),
    /** A connection on which this was sent; nothing is read from it. */
    async send(bytes: string): Promise<Socket> {
      const socket = connect(Number(new URL(menshen.url).port), '127.0.0.1')
      sockets.push(socket)
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(bytes)
      return socket
    },
  }
}

const head = (line: string, { cookie }: SignedInUser, ...more: string[]) =>
  `${[`${line} HTTP/1.1`, 'host: a', `cookie: ${cookie}`, ...more].join('\r\n')}\r\n\r\n`

async function expectPages(user: SignedInUser, menshen: Instance): Promise<void> {
  const pages = await Promise.all(Array.from({ length: 20 }, () => user.get(menshen)))
  assert.deepEqual([...new Set(pages.map(({ status }) => status))], [200])
}

test('slow clients and a hanging page under the default settings', async t => {
  const { menshen, upstream, slow, other, send, hangUp } = await open(t)

  await t.test(
    `${EACH} stalled bodies, unread responses, event streams and sockets of one user do not block another user’s pages`,
    async () => {
      const socket = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13']
      for (const bytes of [
        `${head('POST /body', slow, 'content-length: 100')}ab`,
        head('GET /large', slow),
        head('GET /events', slow),
        head('GET /', slow, ...socket, 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='),
      ]) {
        await inParallel(Array(EACH).keys(), AT_ONCE, () => send(bytes))
        await expectPages(other, menshen)
      }
      assert.equal((await other.get(menshen, '/_menshen/ready')).status, 200)
      hangUp()
    },
  )

  await t.test('700 requests to a hanging page lead to 503 only for their user, and readiness stays 200', async () => {
    await inParallel(Array(700).keys(), AT_ONCE, () => send(head('GET /hung', slow)))
    await until(() => upstream.received.filter(({ target }) => target === '/hung').length === 256)
    for (let n = 0; n < 3; n++) await expectPages(other, menshen)
    assert.equal((await other.get(menshen, '/_menshen/ready')).status, 200)
    // Their own are turned away after the usual while.
    const page = await slow.get(menshen)
    assert.equal(page.status, 503)
    assert.match(String(page.headers['retry-after']), /^\d+$/)
    assert.equal((await other.get(menshen, '/_menshen/ready')).status, 200)
    await expectPages(other, menshen)
    hangUp()
    await until(async () => (await slow.get(menshen)).status === 200)
  })
})

test(`${LEAVING} queued requests whose clients disconnect leak no memory and no file descriptors`, async t => {
  const env = {
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_QUEUE: '100000',
    UPSTREAM_QUEUE_TIMEOUT_MS: '60000',
    NODE_OPTIONS: '--max-old-space-size=96',
  }
  const { menshen, upstream, slow, other, send } = await open(t, env)
  requireLinux('/proc')
  const descriptors = () => readdirSync(`/proc/${menshen.workers()[0]}/fd`).length
  const before = descriptors()
  const holding = await send(head('GET /hung', slow))
  await until(() => upstream.received.length === 1)
  for (let left = 0; left < LEAVING; left += AT_ONCE) {
    const bytes = head('GET /left', slow, `x-large: ${LONG_HEADER}`)
    const sockets = await Promise.all(Array.from({ length: AT_ONCE }, () => send(bytes)))
    await until(async () => (await scrape(menshen.url)).value('menshen_upstream_queue') === AT_ONCE)
    for (const socket of sockets) socket.destroy()
  }
  holding.destroy()
  assert.equal((await other.get(menshen)).status, 200)
  assert.equal(upstream.received.filter(({ target }) => target === '/left').length, 0)
  await until(() => descriptors() <= before + 5)
})
