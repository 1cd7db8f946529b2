// Whether an address can be reached at all: its name resolves, a connection opens, and its certificate is good and will be
// for a while.
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { portIn } from '../../settings/deployment.ts'
import { printable } from '../../settings/json-place.ts'
import { codeOf, type Finding, failure, good, warning } from './finding.ts'

export const DAY_MS = 24 * 3_600_000
/** Within so many days before its end, a certificate should be renewed. */
export const RENEW_DAYS = 14
/** No chain is longer; one that leads in a circle ends here. */
const LONGEST_CHAIN = 10

export interface Reach {
  readonly timeoutMs: number
  readonly now: () => number
  /** A certificate authority besides those that Node knows. */
  readonly ca?: string | undefined
}

export async function probeOrigin(name: string, origin: string, reach: Reach): Promise<Finding[]> {
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '')
  const found = await lookup(host, { all: true }).catch(() => [])
  const remedy = 'Check the spelling of the address, and the name servers of this machine.'
  if (found.length === 0) return [failure(`${name} dns`, `${host} has no address`, remedy)]
  const resolved = good(`${name} dns`, `${host} is ${found.map(({ address }) => address).join(', ')}`)
  const isSecure = origin.startsWith('https:')
  return [resolved, isSecure ? await probeTls(name, host, origin, reach) : await probePlain(name, host, origin, reach)]
}

async function probePlain(name: string, host: string, origin: string, reach: Reach): Promise<Finding> {
  const what = `${name} connection`
  const port = portIn(origin)
  try {
    const socket = await opened(connectPlain({ host, port }), 'connect', reach.timeoutMs)
    socket.destroy()
    return good(what, `${host}:${port} accepts connections`)
  } catch (error) {
    return unreachable(what, `${host}:${port}`, error)
  }
}

async function probeTls(name: string, host: string, origin: string, { timeoutMs, now, ca }: Reach): Promise<Finding> {
  const what = `${name} tls`
  const port = portIn(origin)
  const servername = isIP(host) ? '' : host
  // Judged below, where it can also be said what is wrong with it. Nothing is sent over this connection.
  const options = { host, port, servername, rejectUnauthorized: false, ...(ca ? { ca } : {}) }
  try {
    const socket = await opened(connectSecure(options), 'secureConnect', timeoutMs)
    const finding = judgeCertificate(what, socket, now())
    socket.destroy()
    return finding
  } catch (error) {
    return unreachable(what, `${host}:${port}`, error)
  }
}

async function opened<S extends Socket>(socket: S, event: string, timeoutMs: number): Promise<S> {
  // What breaks later is of no interest any more, and must not end the process.
  socket.on('error', () => {})
  try {
    await once(socket, event, { signal: AbortSignal.timeout(timeoutMs) })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function judgeCertificate(what: string, socket: TLSSocket, now: number): Finding {
  const { days, subject, issuer } = firstToExpire(socket.getPeerCertificate(true), now)
  const seen = `${socket.getProtocol()}, certificate by ${issuer}, ${days < 0 ? `expired ${-days}` : `valid for ${days} more`} days`
  if (!socket.authorized)
    return failure(
      what,
      `${seen}; it is not accepted (${String(socket.authorizationError)})`,
      'Have the server send a good certificate with its whole chain; a private authority is added by NODE_EXTRA_CA_CERTS (for upstreams UPSTREAM_CA_FILE).',
    )
  return days < RENEW_DAYS
    ? warning(what, seen, `Have the certificate of ${subject} renewed in time.`)
    : good(what, seen)
}

/** A chain ends with the first of its certificates. */
function firstToExpire(leaf: DetailedPeerCertificate, now: number) {
  const chain: DetailedPeerCertificate[] = []
  for (let next = leaf; next && !chain.includes(next) && chain.length < LONGEST_CHAIN; next = next.issuerCertificate)
    chain.push(next)
  const ends = chain.map(({ subject, valid_to }) => ({ subject, end: Date.parse(valid_to) }))
  const [first] = ends.filter(({ end }) => !Number.isNaN(end)).sort((one, other) => one.end - other.end)
  const { O, CN } = leaf.issuer ?? {}
  return {
    days: Math.floor(((first?.end ?? now) - now) / DAY_MS),
    subject: printable(String(first?.subject?.CN ?? 'the server')),
    issuer: printable(String(O ?? CN ?? 'an unknown authority')),
  }
}

function unreachable(what: string, where: string, error: unknown): Finding {
  const code = codeOf(error)
  return failure(what, `no connection to ${where} (${code})`, remedyFor(code))
}

const TLS_FAULTS = ['EPROTO', 'ECONNRESET', 'ERR_SSL_WRONG_VERSION_NUMBER']

function remedyFor(code: string): string {
  if (code === 'ECONNREFUSED') return 'Nothing listens there: check the address and the port, and that it is running.'
  if (TLS_FAULTS.includes(code)) return 'It may not speak https there: check the scheme and the port of the address.'
  return 'Check the address, the firewall, and that it is running.'
}
