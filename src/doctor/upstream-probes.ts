// Checks whether each application behind Menshen accepts connections, and answers.

import { X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { Agent, request } from 'undici'
import { portIn } from '../config/deployment.ts'
import type { Config } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import { readUpstreamFiles } from '../config/upstream-files.ts'
import type { UpstreamConfig } from '../config/upstreams.ts'
import { isOwnPath } from '../paths.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { sanitize } from '../util/safe-text.ts'
import { codeOf, DOCTOR_AGENT, type Finding, failure, good, type Probe, reasonOf, warning } from './finding.ts'
import { isOurselves, type ProxyProbeOptions } from './proxy-probe.ts'

/** An answer to HEAD with this status or a higher one is ignored. */
const NO_HEAD = 400

export interface UpstreamProbesOptions {
  readonly settings: Pick<Settings, 'UPSTREAM' | 'UPSTREAM_CA_FILE' | 'UPSTREAM_CONNECT_TIMEOUT_MS' | 'LOGIN_PATH'>
  readonly config: Config
  readonly timeoutMs: number
  readonly now: () => number
  /** How to ask Menshen with these settings. */
  readonly proxy: ProxyProbeOptions
}

export function upstreamProbes(options: UpstreamProbesOptions): Probe[] {
  const { UPSTREAM } = options.settings
  const places: Config['upstreams'] = { ...(UPSTREAM && { '/': UPSTREAM }), ...options.config.upstreams }
  if (Object.keys(places).length === 0)
    return [{ name: 'upstream', run: async () => [good('upstream', phrase('no_upstream'))] }]
  return Object.entries(places).map(([prefix, place]) => {
    const name = `upstream ${prefix}`
    const option = typeof place === 'string' ? { url: place } : place
    return { name, run: () => probeUpstream(name, prefix, option, options) }
  })
}

async function probeUpstream(
  name: string,
  prefix: string,
  option: UpstreamConfig,
  options: UpstreamProbesOptions,
): Promise<Finding[]> {
  const { settings, timeoutMs, now } = options
  const url = option.url.replace(/^h2c:/, 'http:')
  const files = readUpstreamFiles(prefix, option)
  const ca = files.ca ?? (settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8'))
  const pair = files.cert && files.key ? { cert: files.cert, key: files.key } : {}
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const reached = socketPath ? [] : await probeOrigin(name, url, { timeoutMs, now, ca, ...pair })
  if (reached.some(({ level }) => level === 'failure')) return reached
  const isOwn = socketPath ? false : isOurselves(url, options.proxy, ca)
  const connect = {
    timeout: timeoutMs,
    useH2c: option.url.startsWith('h2c:'),
    ...(socketPath && { socketPath }),
    ...(ca && { ca }),
    ...pair,
  }
  const dispatcher = new Agent({ connect })
  const target = new URL(prefix, socketPath ? 'http://localhost' : url)
  // Any answer will do, and only its head is read. Closing the connection discards the rest.
  const ask = async (method: 'HEAD' | 'GET', address = target) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const { statusCode, body } = await request(address, {
      method,
      headers: { 'user-agent': DOCTOR_AGENT },
      dispatcher,
      signal,
    })
    body.on('error', () => {})
    return statusCode
  }
  try {
    const status = await ask('HEAD').catch(() => NO_HEAD)
    // Many applications support only GET, and answer other methods with an error or not at all.
    const last = status < NO_HEAD ? status : await ask('GET')
    if (await isOwn)
      return [...reached, failure(name, phrase('upstream_is_ourselves', { url }), phrase('name_application'))]
    const login = ownLoginPath(prefix, settings)
    const taken = login && last < 500 && (await ask('GET', new URL(login, target)).catch(() => NO_PAGE))
    return [...reached, statusFinding(name, last), ...(login && taken ? loginFindings(name, login, taken) : [])]
  } catch (error) {
    const seen = phrase('upstream_no_answer', { code: reasonOf(error) })
    return [...reached, failure(name, seen, phrase('check_application_running'))]
  } finally {
    await dispatcher.destroy()
  }
}

function statusFinding(name: string, status: number): Finding {
  const seen = phrase('upstream_answers', { status })
  return status >= 500 ? warning(name, seen, phrase('look_at_application_log')) : good(name, seen)
}

const NO_PAGE = 404

/** Only the upstream of `/` can have a page there; no application has pages below our own prefix. */
function ownLoginPath(prefix: string, { LOGIN_PATH }: UpstreamProbesOptions['settings']): string | undefined {
  return prefix === '/' && !isOwnPath(LOGIN_PATH, []) ? LOGIN_PATH : undefined
}

function loginFindings(name: string, path: string, status: number): Finding[] {
  if (status === NO_PAGE) return []
  return [warning(`${name} login`, phrase('application_has_path', { path, status }), phrase('move_login_path'))]
}

// Whether this server's own certificate can be read, and how long it is valid.

interface CertificateOptions {
  readonly settings: Pick<Settings, 'TLS_CERT_FILE'>
  readonly now: () => number
}

export function certificateProbes({ settings, now }: CertificateOptions): Probe[] {
  const file = settings.TLS_CERT_FILE
  return file === undefined ? [] : [{ name: 'certificate', run: async () => [await probeFile(file, now())] }]
}

async function probeFile(file: string, now: number): Promise<Finding> {
  try {
    // The first certificate in the file is the server's own.
    const { subject, validTo } = new X509Certificate(await readFile(file))
    const days = Math.floor((Date.parse(validTo) - now) / DAY_MS)
    const name = sanitize(subject.replaceAll('\n', ', '), 200)
    const until = new Date(validTo).toISOString()
    const seen =
      days < 0
        ? phrase('certificate_expired', { subject: name, days: -days, until })
        : phrase('certificate_valid', { subject: name, days, until })
    const remedy = phrase('renew_own_certificate')
    if (days < 0) return failure('certificate', seen, remedy)
    return days < RENEW_DAYS ? warning('certificate', seen, remedy) : good('certificate', seen)
  } catch (error) {
    const seen = phrase('certificate_unreadable', { code: reasonOf(error) })
    return failure('certificate', seen, phrase('make_certificate_readable'))
  }
}

// Whether an address can be reached at all: its name resolves, a connection opens, and its certificate is valid and stays so
// for a while.

export const DAY_MS = 24 * 3_600_000
/** A certificate should be renewed within this many days before it expires. */
export const RENEW_DAYS = 14
/** No real chain is longer; a circular one is cut off here. */
const MAX_CHAIN_LENGTH = 10

export interface Reach {
  readonly timeoutMs: number
  readonly now: () => number
  /** A certificate authority besides those that Node knows. */
  readonly ca?: string | undefined
  /** The name to connect to, if it differs from that in the address. */
  readonly connectTo?: string
  /** Our certificate, and its key. */
  readonly cert?: string
  readonly key?: string
}

export async function probeOrigin(name: string, origin: string, reach: Reach): Promise<Finding[]> {
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '')
  const found = await lookup(reach.connectTo ?? host, { all: true }).catch(() => [])
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
    const socket = await opened(connectPlain({ host: reach.connectTo ?? host, port }), 'connect', reach.timeoutMs)
    socket.destroy()
    return good(what, phrase('accepts_connections', { place: `${host}:${port}` }))
  } catch (error) {
    return unreachable(what, `${host}:${port}`, error)
  }
}

async function probeTls(name: string, host: string, origin: string, reach: Reach): Promise<Finding> {
  const { timeoutMs, now, ca, cert, key, connectTo = host } = reach
  const what = `${name} tls`
  const port = portIn(origin)
  const servername = isIP(host) ? '' : host
  // The certificate is judged below, which can also report what is wrong with it. Nothing is sent over this connection.
  const options = {
    host: connectTo,
    port,
    servername,
    rejectUnauthorized: false,
    ...(ca ? { ca } : {}),
    ...(cert && key && { cert, key }),
  }
  try {
    const socket = await opened(connectSecure(options), 'secureConnect', timeoutMs)
    const finding = certificateFinding(what, socket, now())
    socket.destroy()
    return finding
  } catch (error) {
    return unreachable(what, `${host}:${port}`, error)
  }
}

async function opened<S extends Socket>(socket: S, event: string, timeoutMs: number): Promise<S> {
  // Later errors no longer matter, and must not end the process.
  socket.on('error', () => {})
  try {
    await once(socket, event, { signal: AbortSignal.timeout(timeoutMs) })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function certificateFinding(what: string, socket: TLSSocket, now: number): Finding {
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

/** A chain expires as soon as one of its certificates does. */
function firstToExpire(leaf: DetailedPeerCertificate, now: number) {
  const chain: DetailedPeerCertificate[] = []
  for (let next = leaf; next && !chain.includes(next) && chain.length < MAX_CHAIN_LENGTH; next = next.issuerCertificate)
    chain.push(next)
  const ends = chain.map(({ subject, valid_to }) => ({ subject, end: Date.parse(valid_to) }))
  const [first] = ends.filter(({ end }) => !Number.isNaN(end)).sort((one, other) => one.end - other.end)
  const { O, CN } = leaf.issuer ?? {}
  return {
    days: Math.floor(((first?.end ?? now) - now) / DAY_MS),
    subject: first?.subject?.CN === undefined ? phrase('the_server') : sanitize(String(first.subject.CN)),
    issuer: (O ?? CN) === undefined ? phrase('unknown_authority') : sanitize(String(O ?? CN)),
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
