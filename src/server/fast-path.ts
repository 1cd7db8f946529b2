// Every trick that relies on the internals of Node or V8, with its reason, its figure, and what happens without it. A trick that
// saves less than 2 % is removed. Figures are of a signed-in check or page on one core; bench/ measures both.
//
// | trick                | saves                                        | if Node or V8 change                                |
// |----------------------|----------------------------------------------|-----------------------------------------------------|
// | `setV8Flags`         | 5 % of checks by each flag                   | V8 ignores an unknown flag, and complains on stderr |
// | `disableIdleGc`      | a third of a check after a quiet time        | the same                                            |
// | `ServerRequest`      | an eighth of a check (8 of 71 µs)            | Node reads the headers                              |
// | `createSendPrepared` | a tenth of a check (7 of 69 µs)              | Node writes every head                              |
// | `headerLines`        | 2 % of a check with 8,000 users              | the same bytes, more slowly                         |
//
// Three more are for correct behaviour and not for speed: `rememberAddress`, `stopAccepting`, `writeTextAsBytes`.

import type { IncomingHttpHeaders } from 'node:http'
import { Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { IncomingMessage, ServerResponse, validateHeaderName, validateHeaderValue } from '../util/node-http.ts'

// How V8 compiles and collects garbage.

/** From this version on V8 does not need to be told about buffers, and the flag is unknown. */
const EXTERNAL_MEMORY_DEFAULT_VERSION = [14, 8] as const
/** V8's own limit is 920: a signed-in check then consists of a dozen functions that call each other. */
const INLINED_BYTECODE = 3000

/** Called before the gateway is loaded: V8 sets its limits by it. */
export function setV8Flags(version = process.versions.v8): void {
  // A response body passes through in buffers that are garbage a moment later; a small collection frees them. Older versions of V8
  // collect the whole heap after every few of them, which was half of the work of a large response.
  if (isBefore(version, EXTERNAL_MEMORY_DEFAULT_VERSION))
    setFlagsFromString('--external-memory-accounted-in-global-limit')
  // Where most objects of a line of code live on for a while, V8 places all later ones among the old objects. There they keep the
  // whole request alive until the whole heap is collected. Checks take 5 % more beside 2,000 open connections, and up to a
  // quarter more in a process with a million sessions.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Requests of many kinds make the compiler more cautious; with more room, checks take 5 % less.
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${INLINED_BYTECODE}`)
}

/** Earlier versions were not tested for the flag. */
const GC_COUNT_VERSION = [14, 6] as const
/** More than the ratio of the largest space for new objects to the smallest. */
const GROWTH_FACTOR = 32

/**
 * After half a minute without requests V8 collects to give memory back: 57 of 142 MB. The next checks then take 100 instead of
 * 63 µs. Probably it drops hidden classes that only requests have, and the machine code that relies on them.
 *
 * V8 also gives the space for new objects back when there are few. Under load it takes it again by doubling, each time after many
 * collections: 250 instead of 15 for 40,000 checks, 5 % of their work. With the factor it takes all of it in one step. At startup
 * that would be 45 MB more, so this is called when the start is over.
 */
export function disableIdleGc(version = process.versions.v8): void {
  if (!isBefore(version, GC_COUNT_VERSION)) setFlagsFromString('--memory-reducer-gc-count=0')
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`)
}

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}

// Reads the headers of a request with the help of the request before. The next request of a client has the same names, and
// comparing them is faster than creating them: 8 of 71 µs of a signed-in check.

/** The names of a request's headers, each once. */
interface HeaderNames {
  readonly asSent: readonly string[]
  readonly inLowerCase: readonly string[]
}

/** The header names of the latest request with this many headers. */
const latest: HeaderNames[] = []
/** Names and values: more than any browser and any proxy send. */
const MAX_RAW_HEADERS = 200

/** A request of our own HTTP server. */
export class ServerRequest extends IncomingMessage {
  #headers: IncomingHttpHeaders | undefined

  static {
    // In Node the headers are an accessor, read when they are asked for; to TypeScript they are a field. If they are a field in
    // Node, too, it is left alone.
    if (Object.getOwnPropertyDescriptor(IncomingMessage.prototype, 'headers')?.get)
      Object.defineProperty(ServerRequest.prototype, 'headers', {
        get(this: ServerRequest) {
          this.#headers ??= readHeaders(this.rawHeaders) ?? Reflect.get(IncomingMessage.prototype, 'headers', this)
          return this.#headers
        },
        set(this: ServerRequest, headers: IncomingHttpHeaders) {
          this.#headers = headers
        },
      })
  }
}

/** `undefined` for anything unusual, such as a repeated name: Node reads that. */
function readHeaders(raw: readonly string[]): IncomingHttpHeaders | undefined {
  if (raw.length > MAX_RAW_HEADERS) return undefined
  const names = namesIn(raw)
  if (!names) return undefined
  const headers: IncomingHttpHeaders = {}
  for (let index = 0; index < names.length; index++) headers[names[index] as string] = raw[2 * index + 1]
  return headers
}

/** In lower case; `undefined` if one is repeated. */
function namesIn(raw: readonly string[]): readonly string[] | undefined {
  const known = latest[raw.length / 2]
  if (known && isSame(known.asSent, raw)) return known.inLowerCase
  const asSent = raw.filter((_, index) => index % 2 === 0)
  const inLowerCase = asSent.map(name => name.toLowerCase())
  if (!areHeaders(inLowerCase)) return undefined
  latest[asSent.length] = { asSent, inLowerCase }
  return inLowerCase
}

function isSame(names: readonly string[], raw: readonly string[]): boolean {
  for (let index = 0; index < names.length; index++) if (names[index] !== raw[2 * index]) return false
  return true
}

/** A name that every object has, such as `constructor`, is treated as repeated. */
function areHeaders(names: readonly string[]): boolean {
  const isUsual = (name: string) => name !== 'set-cookie' && !(name in {})
  return new Set(names).size === names.length && names.every(isUsual)
}

// Sends heads whose common headers were written and checked once. Node writes and checks every header of every answer: 7 of 69 µs
// of a signed-in check.

/** A response of our own HTTP server: no application has set headers on it. */
export class PreparedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Node keeps the head there until it sends it. */
  declare _header: string | null
}

/** An answer with status 200 that knows its head. */
interface PreparedAnswer<Answer> {
  readonly common: {
    /** Names and values in turn. */
    listFor(answer: Answer): string[]
    /** The status line and the same headers as text, up to those that Node adds. */
    headOfOk(answer: Answer): string
  }
}

export type SendPrepared = <Answer extends PreparedAnswer<Answer>>(response: PreparedResponse, answer: Answer) => void

const DATE = 'Date: '

/**
 * Once a second Node writes a whole head. The other heads of that second get the same end, which Node adds: the date, and how
 * long the connection is kept. If that head is not where or what we expect, Node writes the next one, too.
 */
export function createSendPrepared(now: () => number): SendPrepared {
  let end = ''
  let second = -1

  return (response, answer) => {
    const { common } = answer
    const at = Math.floor(now() / 1000)
    if (at === second && response.shouldKeepAlive) response._header = common.headOfOk(answer) + end
    else {
      response.writeHead(200, common.listFor(answer))
      const start = common.headOfOk(answer)
      const head = response._header
      if (response.shouldKeepAlive && head?.startsWith(start + DATE)) {
        end = head.slice(start.length)
        second = at
      }
    }
    response.end()
  }
}

/**
 * Headers as the lines of a head. Throws what `writeHead` would. Joined rather than concatenated, because V8 would keep all the
 * pieces, and put them together again for each answer: 2 % of a check with 8,000 users, 8 % with 100,000.
 */
export function headerLines(list: readonly string[]): string {
  const pieces: string[] = []
  for (let n = 0; n < list.length; n += 2) {
    const name = list[n] ?? ''
    const value = list[n + 1] ?? ''
    validateHeaderName(name)
    validateHeaderValue(name, value)
    pieces.push(name, ': ', value, '\r\n')
  }
  return pieces.join('')
}

// For correct behaviour, not for speed.

/** Node keeps an address once it was read; after a reset it can no longer be read. */
export function rememberAddress({ remoteAddress: _ }: Socket): void {}

/** In a cluster, Node calls `close` as well: then it does the same as `stopAccepting`. */
export function closeWithoutLoss<HttpServer extends Server>(server: HttpServer): HttpServer {
  server.close = callback => {
    void stopAccepting(server, callback)
    return server
  }
  return server
}

/**
 * Closes the socket, after accepting the connections that the system has queued for us, which it would otherwise reset. Unlike
 * the HTTP server's own `close`, this leaves idle connections open for what may be on its way on them.
 */
export async function stopAccepting(server: Server, callback?: (error?: Error) => void): Promise<void> {
  await acceptPending(server)
  Server.prototype.close.call(server, callback)
}

/** The first turn of the event loop may be half over. */
const MIN_TURNS = 2
/** While connections keep coming. */
const MAX_TURNS = 100

/** Resolves when the event loop has turned without a new connection. */
async function acceptPending(server: Server): Promise<void> {
  let accepted = 0
  const count = () => accepted++
  server.on('connection', count)
  for (let turns = 0, before = 0; turns < MIN_TURNS || (accepted > before && turns < MAX_TURNS); turns++) {
    before = accepted
    await turn()
  }
  server.off('connection', count)
}

/** With `Expect`, node:http writes the head of a request as UTF-8: bytes above 0x7f would be encoded twice. */
export function writeTextAsBytes(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (chunk: unknown, ...more: unknown[]) =>
    typeof chunk === 'string'
      ? write(Buffer.from(chunk, 'latin1'), ...more.filter(one => typeof one === 'function'))
      : write(chunk, ...more)
}
