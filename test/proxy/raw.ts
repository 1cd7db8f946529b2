// HTTP by hand, where node:http would put right what a test wants wrong.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { listen } from '../kit/listen.ts'
import { HANG_MS } from '../kit/until.ts'

export type Wire = Awaited<ReturnType<typeof openWire>>

/** Sends these very bytes, and gives everything that comes back until the other side closes. Bytes are Latin-1. */
export async function raw(url: string, bytes: string): Promise<string> {
  const wire = await openWire(url)
  wire.socket.write(bytes, 'latin1')
  return wire.rest()
}

/** A request with these header lines, on a connection of its own. */
export function request(line: string, ...headers: string[]): string {
  return `${[line, 'host: app.test', 'connection: close', ...headers].join('\r\n')}\r\n\r\n`
}

export async function openWire(url: string) {
  const { hostname, port } = new URL(url)
  // The resolver would try IPv6 first, at each connection.
  const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname)
  let isSilent = false
  socket.setTimeout(HANG_MS, () => {
    isSilent = true
    socket.destroy()
  })
  // A connection that is cut has said all that it will say.
  socket.on('error', () => {})
  await once(socket, 'connect')
  let seen = ''
  socket.setEncoding('latin1').on('data', chunk => {
    seen += chunk
  })
  return {
    socket,
    get seen() {
      return seen
    },
    /** Resolves with everything so far, once it contains this. */
    async sees(part: string): Promise<string> {
      while (!seen.includes(part)) {
        if (socket.closed) throw new Error(`closed before ${JSON.stringify(part)}: ${JSON.stringify(seen)}`)
        await Promise.race([once(socket, 'data'), once(socket, 'close')])
      }
      return seen
    },
    async rest(): Promise<string> {
      if (!socket.closed) await new Promise(resolve => socket.once('close', resolve))
      if (isSilent) throw new Error(`nothing more came: ${JSON.stringify(seen)}`)
      return seen
    },
  }
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1])
}

/** Ways to write a header name that some application reads as the same one. */
export const SPELLINGS: readonly ((name: string) => string)[] = [
  name => name,
  name => name.toLowerCase(),
  name => name.toUpperCase(),
  name => name.replaceAll('-', '_'),
  name => name.toUpperCase().replaceAll('-', '_'),
  name => name.replace('-', '_'),
  ...['.', '~', '!', '#', '$', '%', '&', "'", '*', '+', '^', '`', '|'].map(
    sign => (name: string) => name.replaceAll('-', sign),
  ),
]

/** Each of these headers in each spelling, twice. */
export function forgedLines(names: readonly string[], spellings = SPELLINGS): string[] {
  return names.flatMap(name => spellings.map(spell => `${spell(name)}: forged`)).flatMap(line => [line, line])
}

/** An application by hand: `take` gets each connection, and what it has sent so far by its first request's end. */
export async function startRawUpstream(t: TestContext, take: (socket: Socket, head: string, nth: number) => void) {
  const heads: string[] = []
  const server = createServer(socket => {
    let pending = ''
    socket.on('data', chunk => {
      pending += chunk.toString('latin1')
      if (!pending.includes('\r\n\r\n')) return
      heads.push(pending)
      pending = ''
      take(socket, heads.at(-1) ?? '', heads.length)
    })
  })
  const { url, sockets } = await listen(t, server)
  return { url, heads, sockets }
}
