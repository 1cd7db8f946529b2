// One command to a Redis server, as redis-cli prints its reply into a pipe. A process for each of hundreds of them would take most of the
// time of a test.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

const DEADLINE_MS = 5000

export interface RedisAddress {
  readonly port: number
  readonly password?: string | undefined
  /** The file of the authority, where the server speaks TLS. */
  readonly ca?: string | undefined
}

type Reply = string | Error | readonly Reply[]

/** Rejects with the error of the server, and when no reply comes. */
export async function askRedis({ port, password, ca }: RedisAddress, words: readonly string[]): Promise<string> {
  const place = { host: '127.0.0.1', port }
  const socket = ca ? connectTls({ ...place, ca: readFileSync(ca) }) : connect(place)
  const commands = [...(password ? [['AUTH', password]] : []), words]
  const deadline = setTimeout(() => socket.destroy(new Error('Redis does not reply.')), DEADLINE_MS)
  try {
    await once(socket, ca ? 'secureConnect' : 'connect')
    socket.write(commands.map(encode).join(''))
    let received = Buffer.alloc(0)
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk])
      const replies = readReplies(received)
      if (replies.length === commands.length) return shown(replies.at(-1) ?? '').trim()
    }
    throw new Error('Redis has closed the connection.')
  } finally {
    clearTimeout(deadline)
    socket.destroy()
  }
}

function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
}

/** All that are whole. */
function readReplies(bytes: Buffer): Reply[] {
  const replies: Reply[] = []
  for (let at = 0; at < bytes.length; ) {
    const read = readReply(bytes, at)
    if (!read) break
    replies.push(read.reply)
    at = read.end
  }
  return replies
}

/** `undefined` while it is not whole. */
function readReply(bytes: Buffer, at: number): { reply: Reply; end: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', at)
  if (lineEnd === -1) return undefined
  const kind = bytes.toString('latin1', at, at + 1)
  const line = bytes.toString('utf8', at + 1, lineEnd)
  const next = lineEnd + 2
  if (kind === '-') return { reply: new Error(line), end: next }
  if (kind === '$' && Number(line) >= 0) {
    const end = next + Number(line)
    return bytes.length < end + 2 ? undefined : { reply: bytes.toString('utf8', next, end), end: end + 2 }
  }
  if (kind === '*') return readList(bytes, next, Number(line))
  // What is not there has the length -1, and is printed as nothing.
  return { reply: kind === '$' ? '' : line, end: next }
}

function readList(bytes: Buffer, at: number, length: number): { reply: Reply; end: number } | undefined {
  const reply: Reply[] = []
  let end = at
  while (reply.length < length) {
    const read = readReply(bytes, end)
    if (!read) return undefined
    reply.push(read.reply)
    end = read.end
  }
  return { reply, end }
}

function shown(reply: Reply): string {
  if (reply instanceof Error) throw reply
  return typeof reply === 'string' ? reply : reply.map(shown).join('\n')
}
