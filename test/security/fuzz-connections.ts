// Connections that end in every wrong way: half sent, reset, mixed with others, of every kind that a server can meet. Nothing of
// it may end a process, and whoever comes afterwards is served. A seed gives the same connections again.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import type { TestContext } from 'node:test'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { WebSocketServer } from 'ws'
import { inParallel } from '../../bench/in-parallel.ts'
import { startDevProvider } from '../../src/dev-provider/dev-provider.ts'
import { createClient, signIn } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { openLibrary } from '../kit/library.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { createRandom, type Random } from './random.ts'

export interface Plan {
  readonly seed: number
  readonly connections: number
}

/** Something that listens. */
interface Target {
  readonly name: string
  readonly port: number
  readonly isSecure?: true
  /** Where somebody can sign in. */
  readonly url?: string
  /** Of somebody who is signed in there, and may sign out. */
  cookie?: string
}

const AT_ONCE = 48
const CHECK_EVERY = 500
/** Longer than a kept connection has anything to wait for here. */
const LONGEST_MS = 400
const SLOW_MS = 5
const LARGE = Buffer.alloc(600_000, 'x')

export async function fuzzConnections(t: TestContext, { seed, connections }: Plan) {
  const provider = await openScriptedProvider(t)
  const UPSTREAM = await startApplication(t)
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'menshen.config.ts'), 'export default { rules: [{ path: "/public", public: true }] }\n')
  const certificate = makeCertificate(folder, 'server', makeAuthority(folder))
  const common = { ...provider.settings, STORE: 'memory:', RATE_LIMIT_PER_MINUTE: '0', UPSTREAM }
  const plain = await startInstance(common, { cwd: folder })
  t.after(() => plain.killAll('SIGKILL'))
  const { certFile: TLS_CERT_FILE, keyFile: TLS_KEY_FILE } = certificate
  const secure = await startInstance({ ...common, TLS_CERT_FILE, TLS_KEY_FILE })
  t.after(() => secure.kill('SIGKILL'))
  const library = await openLibrary(t, common)
  const development = await startDevProvider({
    port: 0,
    clientId: 'fuzz',
    clientSecret: 'fuzz',
    redirectUri: `${plain.url}/callback`,
    now: Date.now,
  })
  t.after(() => development.close())

  async function signedIn(url: string): Promise<string> {
    const client = createClient(url)
    await signIn(client, provider, { username: 'admin' })
    return `menshen_session=${client.cookies.get('menshen_session')}`
  }
  const portOf = (url: string) => Number(new URL(url).port)
  const targets: Target[] = [
    { name: 'the command', port: portOf(plain.url), url: plain.url },
    { name: 'the command with TLS', port: portOf(secure.url), isSecure: true },
    { name: 'the library', port: portOf(library.url), url: library.url },
    { name: 'the development provider', port: portOf(development.url) },
  ]
  const counts: Record<string, number> = {}
  const ended: string[] = []
  plain.exited.then(() => ended.push(`the command: ${plain.output.slice(-12).join('\n')}`))
  secure.exited.then(() => ended.push(`the command with TLS: ${secure.output.slice(-12).join('\n')}`))

  /** Whoever comes in the right way is served. */
  async function check(): Promise<void> {
    assert.deepEqual(ended, [])
    const health = { path: '/_menshen/health', expected: 'HTTP/1.1 200 ' }
    for (const target of targets) {
      const path = target.name === 'the development provider' ? '/style.css' : health.path
      const answer = await ask(target, `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
      assert.equal(answer.slice(0, health.expected.length), health.expected, `${target.name} does not answer`)
      if (!target.url) continue
      target.cookie = await signedIn(target.url)
      const head = `GET /page HTTP/1.1\r\nhost: localhost\r\ncookie: ${target.cookie}\r\nconnection: close\r\n\r\n`
      assert.match(await ask(target, head), /^HTTP\/1\.1 200 .*hello$/s, `${target.name} does not serve its user`)
    }
  }

  const random = createRandom(seed)
  let done = 0
  await check()
  while (done < connections && ended.length === 0) {
    const batch = Math.min(CHECK_EVERY, connections - done)
    const plans = Array.from({ length: batch }, () => {
      const target = random.pick(targets)
      return { target, kind: random.pick(KINDS), random: createRandom(random.below(2 ** 31)) }
    })
    await inParallel(plans, AT_ONCE, async ({ target, kind, random }) => {
      const name = `${target.isSecure ? 'TLS, ' : ''}${kind.name}`
      counts[name] = (counts[name] ?? 0) + 1
      await misbehave(target, kind, random)
    })
    done += batch
    await check()
  }
  assert.deepEqual(ended, [])
  return {
    done,
    counts,
    /** Nothing that is left of it keeps them from their end. */
    exits: await Promise.all([plain.kill('SIGTERM'), secure.kill('SIGTERM')]),
  }
}

interface Kind {
  readonly name: string
  bytes(random: Random, target: Target): string
}

const APPLICATION = [
  '/page',
  '/slow',
  '/large',
  '/early',
  '/drop',
  '/half',
  '/hints',
  '/events',
  '/public/page',
  '/echo',
]
const OWN = [
  '/login',
  '/callback?code=a&state=b_idp',
  '/logout',
  '/_menshen/me',
  '/_menshen/check',
  '/_menshen/forward',
  '/_menshen/authz/public',
  '/_menshen/doctor',
  '/_menshen/account',
  '/_menshen/console/live',
  '/_menshen/console/audit.csv',
  '/_menshen/console/audit/live',
  '/_menshen/console/end',
  '/oauth/token',
  '/oauth/authorize',
]
const SOCKET = ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: abcd']
const BODY = 'grant_type=refresh_token&x=1'

const KINDS: readonly Kind[] = [
  { name: 'plain', bytes: (random, target) => head(random, target, 'GET') },
  {
    name: 'pipelined',
    bytes: (random, target) =>
      Array.from({ length: 2 + random.below(5) }, () => random.pick(KINDS.slice(2)).bytes(random, target)).join(''),
  },
  {
    name: 'length',
    bytes: (random, target) =>
      head(random, target, method(random), [`content-length: ${length(random)}`]) + part(random, BODY),
  },
  {
    name: 'chunked',
    bytes: (random, target) => head(random, target, method(random), ['transfer-encoding: chunked']) + chunks(random),
  },
  {
    name: 'expect',
    bytes: (random, target) =>
      head(random, target, method(random), [
        `expect: ${random.pick(['100-continue', '100-continue', 'the-impossible'])}`,
        random.pick([`content-length: ${BODY.length}`, 'transfer-encoding: chunked', 'x-none: 1']),
      ]) + part(random, BODY),
  },
  {
    name: 'upgrade',
    bytes: (random, target) => head(random, target, 'GET', SOCKET) + part(random, '\x81\x85abcd12345'),
  },
  {
    name: 'upgrade with a body',
    bytes: (random, target) => {
      const body = random.pick([`content-length: ${length(random)}`, 'transfer-encoding: chunked', 'content-length: 0'])
      return head(random, target, random.pick(['GET', 'POST']), [...SOCKET, body]) + part(random, BODY)
    },
  },
  {
    name: 'other upgrades',
    bytes: (random, target) =>
      head(random, target, random.pick(['GET', 'POST']), [
        'connection: Upgrade, HTTP2-Settings',
        `upgrade: ${random.pick(['h2c', 'TLS/1.0', 'websocket, h2c'])}`,
        random.pick(['http2-settings: AAMAAABkAARAAAAAAAIAAAAA', `content-length: ${length(random)}`]),
      ]),
  },
  {
    name: 'connect',
    bytes: random =>
      `CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n${random.pick(['', 'content-length: 10\r\n', 'transfer-encoding: chunked\r\n'])}\r\n`,
  },
  { name: 'HTTP/2', bytes: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0' },
  {
    name: 'noise',
    bytes: random => String.fromCharCode(...Array.from({ length: 1 + random.below(300) }, () => random.below(256))),
  },
]

function head(random: Random, { cookie }: Target, method: string, lines: readonly string[] = []): string {
  const path = random.pick(random.chance(0.6) ? APPLICATION : OWN)
  const more = cookie !== undefined && random.chance(0.7) ? [`cookie: ${cookie}`] : []
  const version = random.chance(0.05) ? '1.0' : '1.1'
  return `${[`${method} ${path} HTTP/${version}`, 'host: localhost', ...more, ...lines].join('\r\n')}\r\n\r\n`
}

const method = (random: Random) => random.pick(['POST', 'PUT', 'PATCH', 'GET', 'DELETE', 'OPTIONS', 'HEAD'])
const length = (random: Random) => random.pick([BODY.length, BODY.length + 1, 10, 100_000, 1])
const part = (random: Random, text: string) => text.slice(0, random.below(text.length + 1))

function chunks(random: Random): string {
  const whole = `5\r\nhello\r\n${BODY.length.toString(16)};x=y\r\n${BODY}\r\n0\r\nx-trailer: 1\r\n\r\n`
  return random.pick([whole, part(random, whole), 'xyz\r\n', `fffffff\r\n${BODY}`])
}

/** How a connection is left, and when. */
const ENDINGS = ['reset', 'reset', 'destroy', 'end', 'stay'] as const
const MOMENTS = ['at once', 'next turn', 'soon', 'when something comes'] as const

async function misbehave(target: Target, kind: Kind, random: Random): Promise<void> {
  const raw = connect(target.port, '127.0.0.1')
  raw.on('error', () => {})
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  raw.once('close', close)
  const longest = setTimeout(() => raw.destroy(), LONGEST_MS)
  await Promise.race([closed, new Promise(resolve => raw.once('connect', resolve))])
  const channel = target.isSecure && !random.chance(0.15) ? await secured(raw, closed, random) : raw
  channel?.on('error', () => {}).on('data', () => {})

  const whole = Buffer.from(kind.bytes(random, target), 'latin1')
  const bytes = random.chance(0.5) ? whole : whole.subarray(0, random.below(whole.length + 1))
  for (const piece of pieces(random, bytes)) {
    if (!channel?.writable) break
    channel.write(piece)
    if (random.chance(0.5)) await nextTurn()
  }
  const moment = random.pick(MOMENTS)
  if (moment === 'next turn') await nextTurn()
  if (moment === 'soon') await pause(random.below(3 * SLOW_MS))
  if (moment === 'when something comes')
    await Promise.race([closed, pause(20 * SLOW_MS), new Promise(resolve => channel?.once('data', resolve))])
  const ending = random.pick(ENDINGS)
  // Over TLS too: the connection breaks, and nothing is said.
  if (ending === 'reset') raw.resetAndDestroy()
  if (ending === 'destroy') channel?.destroy()
  if (ending === 'end') channel?.end()
  if (ending !== 'stay' || random.chance(0.7)) setTimeout(() => raw.destroy(), random.below(10 * SLOW_MS))
  await closed
  clearTimeout(longest)
}

/** `undefined` where the handshake itself is broken off. */
async function secured(raw: Socket, closed: Promise<void>, random: Random) {
  // In between, so that the connection itself can be broken in ways that TLS does not expect of its own end.
  const [near, far] = duplexPair()
  raw.pipe(far).pipe(raw)
  for (const end of [near, far]) end.on('error', () => {})
  raw.once('close', () => near.destroy())
  const secure = connectSecurely({ socket: near, rejectUnauthorized: false, servername: 'localhost' })
  secure.on('error', () => {})
  if (random.chance(0.2)) {
    if (random.chance(0.5)) await nextTurn()
    raw.resetAndDestroy()
    return undefined
  }
  await Promise.race([closed, new Promise(resolve => secure.once('secureConnect', resolve))])
  return secure
}

function pieces(random: Random, bytes: Buffer): Buffer[] {
  if (random.chance(0.6)) return [bytes]
  const at = random.below(bytes.length + 1)
  return [bytes.subarray(0, at), bytes.subarray(at)]
}

/** In the right way. */
async function ask({ port, isSecure }: Target, bytes: string): Promise<string> {
  const raw = connect(port, '127.0.0.1')
  const channel = isSecure ? connectSecurely({ socket: raw, rejectUnauthorized: false, servername: 'localhost' }) : raw
  const received: Buffer[] = []
  channel.on('data', (chunk: Buffer) => received.push(chunk))
  channel.write(bytes)
  await once(channel, 'close')
  return Buffer.concat(received).toString('latin1')
}

/** An application that is slow, answers early, breaks off, gives hints, streams, and speaks WebSocket. */
async function startApplication(t: TestContext): Promise<string> {
  const server = createServer((request, response) => void answer(request, response))
  server.on('clientError', (_error, socket) => socket.destroy())
  new WebSocketServer({ server }).on('connection', socket => {
    socket.on('error', () => {}).on('message', data => socket.send(data))
  })
  return (await listen(t, server)).url
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on('error', () => {})
  const { url = '' } = request
  if (url !== '/early') request.resume()
  if (url === '/slow') await pause(SLOW_MS)
  if (url === '/drop') return void request.socket.destroy()
  if (url === '/half') {
    response.writeHead(200, { 'content-length': 100 })
    response.write('half')
    return void setTimeout(() => request.socket.resetAndDestroy(), SLOW_MS)
  }
  if (url === '/hints') {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    await pause(SLOW_MS)
  }
  if (url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = setInterval(() => {
      if (request.socket.destroyed) clearInterval(events)
      else response.write('data: 1\n\n')
    }, SLOW_MS)
    return
  }
  response.end(url === '/large' ? LARGE : 'hello')
}
