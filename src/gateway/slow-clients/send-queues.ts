// How much the kernel still holds of what was written to a connection. It takes megabytes at once and asks for more only when
// a good part of them is gone: nothing else shows whether a slow client reads at all.
import { readFile } from 'node:fs/promises'
import { type Socket, SocketAddress } from 'node:net'
import { endianness } from 'node:os'

/** The bytes that the other side has not taken yet. `undefined` where nobody knows: not on Linux, or not on TCP. */
export type SendQueueOf = (socket: Socket) => number | undefined

interface Row {
  /** As the kernel writes it. */
  readonly peer: string
  readonly queued: number
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
/** Number, local address and port, peer's address and port, state, bytes that wait to be sent or confirmed. */
const ROW = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) [\dA-F]{2} ([\dA-F]{8}):/gm

/** All connections of this machine as they are now. */
export async function readSendQueues(): Promise<SendQueueOf> {
  const tables = await Promise.all(TABLES.map(table => readFile(table, 'latin1').catch(() => '')))
  const rows = new Map<string, Row[]>()
  for (const [, localPort = '', peer = '', peerPort = '', queued = ''] of tables.join('').matchAll(ROW)) {
    const ports = `${localPort} ${peerPort}`
    const row = { peer, queued: Number.parseInt(queued, 16) }
    const same = rows.get(ports)
    if (same) same.push(row)
    else rows.set(ports, [row])
  }
  return ({ localPort, remotePort, remoteAddress }) => {
    if (localPort === undefined || remotePort === undefined || remoteAddress === undefined) return undefined
    const candidates = rows.get(`${portOf(localPort)} ${portOf(remotePort)}`)
    const [address] = remoteAddress.split('%')
    return candidates?.find(({ peer }) => addressOf(peer) === address)?.queued
  }
}

function portOf(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}

/** The kernel writes an address as numbers of 32 bits in the order of this machine. */
function addressOf(peer: string): string {
  const bytes = Buffer.from(peer, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(n * 2).toString(16))
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
}
