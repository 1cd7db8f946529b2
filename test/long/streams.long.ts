// Much at once through the gateway: a gigabyte each way in little memory, and a thousand sockets that end with their
// sessions.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import test, { type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { inParallel } from '../../bench/in-parallel.ts'
import { memoryOf } from '../../bench/process-memory.ts'
import { createClient } from '../kit/client.ts'
import { type Instance, type SignedInUser, setUpInstances, signedIn } from '../kit/instance.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const GIBIBYTE = 2 ** 30
const WARM_UP = 2 ** 28
const BLOCK = 2 ** 18
const MAX_GROWTH = 64e6
const LOOK_EVERY_MS = 50
const SOCKETS = 1000
const AT_ONCE = 50

test('1 GiB down and 1 GiB up arrive unchanged, and memory grows by less than 64 MB', { timeout: 300_000 }, async t => {
  const gift = gibibyte()
  const upstream = await startUpstream(t, async (request, response) => {
    if (request.url === '/up') response.end(await digestOf(request))
    else if (request.url === '/down')
      await pipeline(gift.stream(), response.writeHead(200, { 'content-length': GIBIBYTE }))
    else response.end('hello')
  })
  const { provider, start } = await setUpInstances(t, { UPSTREAM: upstream.url, LOG_LEVEL: 'warn' })
  const menshen = await start()
  const { cookie } = await signedIn(menshen, provider)
  const expected = await digestOf(gift.stream())
  // Node lets tens of megabytes of read buffers pile up before it collects them, whatever the size of what is streamed.
  const atStart = memoryOf(menshen.workers()[0] ?? 0).resident
  await text(await ask(menshen, '/up', cookie, gift.stream(WARM_UP)))

  const down = await watchMemory(menshen, async () => digestOf(await ask(menshen, '/down', cookie)))
  assert.equal(down.result, expected)
  const up = await watchMemory(menshen, async () => text(await ask(menshen, '/up', cookie, gift.stream())))
  assert.equal(up.result, expected)
  const sinceStart = Math.round((Math.max(down.most, up.most) - atStart) / 1e6)
  t.diagnostic(`1 GiB down: ${down.figures}; 1 GiB up: ${up.figures}; ${sinceStart} MB more than at the start`)
  assert.ok(down.growth < MAX_GROWTH && up.growth < MAX_GROWTH)
})

for (const WORKERS of ['1', '2']) {
  const many = `${SOCKETS} sockets of ${SOCKETS} sessions, WORKERS=${WORKERS}`

  test(`${many}: each is closed after its user signs out`, { timeout: 300_000 }, async t => {
    const { menshen, users } = await openSockets(t, WORKERS, n => `user-${n}`)
    const delays: number[] = []
    await inParallel(users, AT_ONCE, async ({ user, closedAt }) => {
      await user.signOut(menshen)
      const signedOutAt = performance.now()
      delays.push((await closedAt) - signedOutAt)
    })
    tell(t, many, delays)
  })

  test(`${many}: all are closed after their one user signs out everywhere`, { timeout: 300_000 }, async t => {
    const { menshen, users } = await openSockets(t, WORKERS, () => 'zhangsan')
    const [first] = users
    const headers = { cookie: first?.user.cookie }
    await createClient(menshen.url).post('/_menshen/sign-out-everywhere', '', { headers })
    const signedOutAt = performance.now()
    tell(
      t,
      many,
      (await Promise.all(users.map(({ closedAt }) => closedAt))).map(at => at - signedOutAt),
    )
  })
}

interface Connected {
  readonly user: SignedInUser
  /** When its socket was closed. */
  readonly closedAt: Promise<number>
}

async function openSockets(t: TestContext, WORKERS: string, nameOf: (n: number) => string) {
  const upstream = await startUpstream(t)
  const sockets = new WebSocketServer({ server: upstream.server })
  const { provider, start } = await setUpInstances(t, { UPSTREAM: upstream.url, WORKERS, LOG_LEVEL: 'error' })
  const menshen = await start()
  await until(() => WORKERS === '1' || menshen.workers().length === Number(WORKERS))
  const users: Connected[] = []
  await inParallel(Array(SOCKETS).keys(), AT_ONCE, async n => {
    const user = await signedIn(menshen, provider, nameOf(n))
    const socket = new WebSocket(menshen.url.replace('http', 'ws'), { headers: { cookie: user.cookie } })
    t.after(() => socket.terminate())
    await once(socket, 'open')
    socket.on('error', () => {}) // cut off, not closed politely
    users.push({ user, closedAt: once(socket, 'close').then(() => performance.now()) })
  })
  assert.equal(sockets.clients.size, SOCKETS)
  return { menshen, users }
}

function tell(t: TestContext, what: string, delays: readonly number[]): void {
  const sorted = delays.toSorted((one, other) => one - other)
  const [median = 0, slowest = Number.POSITIVE_INFINITY] = [sorted[sorted.length >> 1], sorted.at(-1)]
  t.diagnostic(`${what}: closed after ${Math.round(median)} ms, the last after ${Math.round(slowest)} ms`)
  assert.equal(sorted.length, SOCKETS)
}

/** A gibibyte in which no two blocks are the same, without holding it. */
function gibibyte() {
  const block = randomBytes(BLOCK)
  function* blocks(size: number) {
    for (let n = 0; n < size / BLOCK; n++) {
      const next = Buffer.from(block)
      next.writeUInt32BE(n)
      yield next
    }
  }
  return { stream: (size = GIBIBYTE) => Readable.from(blocks(size), { objectMode: false }) }
}

async function digestOf(stream: Readable): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

async function ask({ url }: Instance, path: string, cookie: string, body?: Readable): Promise<IncomingMessage> {
  const asked = request(url + path, { method: body ? 'POST' : 'GET', headers: { cookie } })
  const answered = once(asked, 'response')
  if (body) await pipeline(body, asked)
  else asked.end()
  const [response] = (await answered) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  return response
}

/** How much more memory the process had at the worst moment of this work than before it. */
async function watchMemory<Result>({ pid }: Instance, work: () => Promise<Result>) {
  const before = memoryOf(pid).resident
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, memoryOf(pid).resident)
  }, LOOK_EVERY_MS)
  const began = performance.now()
  const result = await work().finally(() => clearInterval(timer))
  const growth = most - before
  const seconds = (performance.now() - began) / 1000
  return { result, growth, most, figures: `${seconds.toFixed(1)} s, ${Math.round(growth / 1e6)} MB more memory` }
}
