// Whether an address can be reached at all: its name resolves, a connection opens, and its certificate is good and will be
// for a while.
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { type Phrase, phrase } from '../../phrases.ts'
import { portIn } from '../../settings/deployment.ts'
import { printable } from '../../settings/json-place.ts'
import { codeOf, type Finding, failure, good, reasonOf, warning } from './finding.ts'

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
  if (found.length === 0)
    return [failure(`${name} dns`, phrase('has_no_address', { host }), phrase('check_spelling_and_dns'))]
  const addresses = found.map(({ address }) => address).join(', ')
  const resolved = good(`${name} dns`, phrase('resolves_to', { host, addresses }))
  const isSecure = origin.startsWith('https:')
  return [resolved, isSecure ? await probeTls(name, host, origin, reach) : await probePlain(name, host, origin, reach)]
}

async function probePlain(name: string, host: string, origin: string, reach: Reach): Promise<Finding> {
  const what = `${name} connection`
  const port = portIn(origin)
  try {
    const socket = await opened(connectPlain({ host, port }), 'connect', reach.timeoutMs)
    socket.destroy()
    return good(what, phrase('accepts_connections', { place: `${host}:${port}` }))
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
  const protocol = String(socket.getProtocol())
  const seen =
    days < 0
      ? phrase('tls_expired', { protocol, issuer, days: -days })
      : phrase('tls_valid', { protocol, issuer, days })
  if (!socket.authorized)
    return failure(
      what,
      phrase('tls_not_accepted', { certificate: seen, code: String(socket.authorizationError) }),
      phrase('send_whole_chain'),
    )
  return days < RENEW_DAYS ? warning(what, seen, phrase('renew_their_certificate', { subject })) : good(what, seen)
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
    subject: first?.subject?.CN === undefined ? phrase('the_server') : printable(String(first.subject.CN)),
    issuer: (O ?? CN) === undefined ? phrase('unknown_authority') : printable(String(O ?? CN)),
  }
}

function unreachable(what: string, where: string, error: unknown): Finding {
  const seen = phrase('no_connection', { place: where, code: reasonOf(error) })
  return failure(what, seen, remedyFor(codeOf(error)))
}

const TLS_FAULTS = ['EPROTO', 'ECONNRESET', 'ERR_SSL_WRONG_VERSION_NUMBER']

function remedyFor(code: string): Phrase {
  if (code === 'ECONNREFUSED') return phrase('nothing_listens')
  if (TLS_FAULTS.includes(code)) return phrase('may_not_speak_https')
  return phrase('check_address_and_firewall')
}
