// Clients that read slowly: the kernel takes megabytes for them at once, and still nobody who reads is taken for idle.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readSendQueues } from '../../src/server/send-queues.ts'
import { cookieOf } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { request } from '../proxy/raw.ts'

const IDLE_MS = 600
const SIZE = 16 * 1024 * 1024
const PIECE = 16 * 1024
/** Bytes per millisecond: compared with the deadline, 32 KB a second at the default deadline. */
const RATE = 640
/** The default of libuv. */
const THREADS = 4
const onLinux = { skip: process.platform !== 'linux' && 'only Linux tells what the kernel holds' }

const large: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-length': SIZE }).end(Buffer.alloc(SIZE))
}

async function openReader(t: TestContext, env: Record<string, string> = {}) {
  const scene = await setUp(t, { env: { CLIENT_TIMEOUT_MS: String(IDLE_MS), ...env }, answer: large })
  const socket = connect(Number(new URL(scene.url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {}).pause()
  await once(socket, 'connect')
  socket.write(request('GET / HTTP/1.1', `cookie: ${cookieOf(await scene.user())}`))
  return { scene, socket }
}

/** Reads at `RATE` on average, even if a busy machine wakes it late. Returns the number of bytes. */
async function readSteadily(socket: Socket, bytes: number): Promise<number> {
  const began = performance.now()
  let read = 0
  while (read < bytes && !socket.closed) {
    const isDue = read <= (performance.now() - began) * RATE
    const piece: Buffer | null = isDue ? socket.read(PIECE) : null
    if (piece) read += piece.length
    else await pause(PIECE / RATE)
  }
  return read
}

/** Blocks every thread on which this process reads files, until the returned function is called. */
function blockFileReads(t: TestContext): () => Promise<void> {
  const pipe = join(tempFolder(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  // Each waits until the pipe is opened for writing.
  const blocked = Array.from({ length: THREADS }, () => open(pipe, 'r'))
  return async () => {
    const writer = openSync(pipe, constants.O_RDWR)
    for (const reader of await Promise.all(blocked)) await reader.close()
    closeSync(writer)
  }
}

/** How many bytes still come. */
async function readAll(socket: Socket): Promise<number> {
  let read = 0
  socket.on('data', chunk => {
    read += chunk.length
  })
  socket.resume()
  if (!socket.closed) await once(socket, 'close')
  return read
}

const cutOffs = ({ lines }: Scene) => lines.filter(({ event }) => event === 'client_cut_off')

test('a client that reads slowly but steadily gets all of a large response', onLinux, async t => {
  // The kernel says that a client reads only when a good part of its buffer is free, which a busy machine makes larger.
  const { scene, socket } = await openReader(t, { CLIENT_TIMEOUT_MS: String(2 * IDLE_MS) })
  const read = await readSteadily(socket, SIZE / 8)
  assert.deepEqual(cutOffs(scene), [])
  assert.ok(read + (await readAll(socket)) > SIZE)
})

test(
  'a steady reader is not disconnected after the process was unable to read the connection table for a while',
  onLinux,
  async t => {
    const { scene, socket } = await openReader(t)
    const before = await readSteadily(socket, SIZE / 64)
    const letGo = blockFileReads(t)
    const meanwhile = await readSteadily(socket, 2 * IDLE_MS * RATE)
    await letGo()
    const after = await readSteadily(socket, SIZE / 64)
    assert.deepEqual(cutOffs(scene), [])
    assert.ok(before + meanwhile + after + (await readAll(socket)) > SIZE)
  },
)

test('a client that reads part of a large response and then stops is disconnected', onLinux, async t => {
  const { scene, socket } = await openReader(t)
  let read = 0
  while (read < SIZE / 8 && !socket.closed) {
    read += (socket.read(PIECE) as Buffer | null)?.length ?? 0
    await new Promise(setImmediate)
  }
  await until(() => cutOffs(scene).length === 1)
  assert.match(JSON.stringify(cutOffs(scene)), /reads_nothing/)
  assert.ok(read + (await readAll(socket)) < SIZE)
})

test('a trusted proxy that pauses for three times CLIENT_TIMEOUT_MS still gets the whole response', async t => {
  const { scene, socket } = await openReader(t, { TRUSTED_PROXIES: '127.0.0.1' })
  await until(() => scene.upstream.sockets.size === 1)
  await pause(3 * IDLE_MS)
  assert.deepEqual(cutOffs(scene), [])
  assert.ok((await readAll(socket)) > SIZE)
})

test('the kernel’s send queue of a connection is read over IPv4, IPv6 and IPv4-mapped IPv6', onLinux, async t => {
  for (const [listening, calling] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '::1'],
    ['::', '127.0.0.1'],
  ] as const) {
    const server = createServer().listen(0, listening)
    await once(server, 'listening')
    const address = server.address()
    assert.ok(address && typeof address === 'object')
    const client = connect(address.port, calling).pause()
    const [socket] = (await once(server, 'connection')) as [Socket]
    t.after(() => {
      client.destroy()
      socket.destroy()
      server.close()
    })
    const queued = async () => (await readSendQueues())(socket)
    assert.equal(await queued(), 0, calling)
    socket.write(Buffer.alloc(SIZE))
    await until(async () => ((await queued()) ?? 0) > 0)
    client.resume()
    await until(async () => socket.writableLength === 0 && (await queued()) === 0)
  }
})
