// Checks the way from a browser to the running Menshen: requests BASE_URL as a browser on this machine would, and checks
// what arrives behind the proxies in between.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { request as requestSecure } from 'node:https'
import { z } from 'zod'
import { browserHostname, isLoopback, portIn } from '../config/deployment.ts'
import { isSecure } from '../config/read.ts'
import type { Settings } from '../config/settings.ts'
import { OWN_PATHS } from '../paths.ts'
import type { KeyList } from '../session/derived-keys.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { request as requestPlain } from '../util/node-http.ts'
import { sanitize } from '../util/safe-text.ts'
import { codeOf, DOCTOR_AGENT, type Finding, failure, good, type Probe, reasonOf, warning } from './finding.ts'

/** An address for documentation (RFC 5737): a server that accepts it accepts any address. */
const FORGED_ADDRESS = '192.0.2.1'
const ANSWER_LIMIT = 16 * 1024
/** The resolver does not know the name, or cannot answer for now. */
const DNS_ERROR_CODES = ['ENOTFOUND', 'EAI_AGAIN']
const GATEWAY_ERROR_STATUSES = [502, 503, 504]

const arrival = z.object({
  proof: z.string(),
  host: z.string(),
  proto: z.string(),
  /** The address of the client, as Menshen sees it. */
  client: z.string(),
  /** The address of the other end of the connection. */
  peer: z.string(),
  isTrusted: z.boolean(),
  hasUpgrade: z.boolean(),
})
export type Arrival = z.infer<typeof arrival>

export interface ProxyProbeOptions {
  readonly settings: Pick<Settings, 'BASE_URL' | 'PORT' | 'TLS_CERT_FILE' | 'TRUSTED_PROXIES'>
  readonly key: KeyList
  /** Whether an application's requests, and so its WebSockets, pass through Menshen. */
  readonly isGateway: boolean
  readonly timeoutMs: number
  readonly now: () => number
}

export function proxyProbe(options: ProxyProbeOptions): Probe {
  return { name: 'proxy', run: () => probeProxy(options) }
}

export async function probeProxy(options: ProxyProbeOptions): Promise<Finding[]> {
  const plain = await ask(options, {})
  if (!('proof' in plain)) return [noArrival(options.settings.BASE_URL, plain)]
  const socket = await ask(options, SOCKET_HEADERS)
  const findings = [hostFinding(plain, options), protoFinding(plain, options), clientAddressFinding(plain, options)]
  return [...findings, upgradeFinding(socket, options)]
}

/** Whether Menshen with these settings answers there: then a request that it forwards there would come back to it. */
export async function isOurselves(
  origin: string,
  options: ProxyProbeOptions,
  ca: string | undefined,
): Promise<boolean> {
  return 'proof' in (await ask({ ...options, settings: { ...options.settings, BASE_URL: origin } }, {}, ca))
}

/** Whether Menshen with these settings answers at BASE_URL. */
export async function isRunning(options: ProxyProbeOptions): Promise<boolean> {
  return 'proof' in (await ask(options, {}))
}

type ProbeFailure = { readonly code: string; readonly reason: Phrase } | { readonly status: number }

const SOCKET_HEADERS = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}

async function ask(
  { settings, key, timeoutMs, now }: ProxyProbeOptions,
  more: object,
  ca?: string,
): Promise<Arrival | ProbeFailure> {
  const challenge = newChallenge(key, now())
  const headers = {
    'user-agent': DOCTOR_AGENT,
    [CHALLENGE_HEADER]: challenge,
    'x-forwarded-for': FORGED_ADDRESS,
    accept: 'application/json',
    ...more,
  }
  try {
    const { status, text } = await get(settings.BASE_URL + OWN_PATHS.doctor, headers, timeoutMs, ca)
    const found = arrival.safeParse(parse(text))
    return found.success && isProof(found.data.proof, challenge, key) ? found.data : { status }
  } catch (error) {
    return { code: codeOf(error), reason: reasonOf(error) }
  }
}

/** Does not use fetch, which cannot send Upgrade. */
function get(
  url: string,
  headers: Record<string, string>,
  timeoutMs: number,
  ca: string | undefined,
): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const request = url.startsWith('https:') ? requestSecure : requestPlain
  const { hostname, host } = new URL(url)
  const connectTo = browserHostname(hostname)
  const asked = request(url, {
    headers: { host, ...headers },
    ...(connectTo !== hostname && { hostname: connectTo, servername: hostname }),
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
    ...(ca && { ca }),
  })
  asked.on('error', reject)
  asked.on('upgrade', (_response, socket) => {
    socket.destroy()
    resolve({ status: 101, text: '' })
  })
  asked.on('response', response => {
    let text = ''
    response.setEncoding('utf8').on('error', reject)
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.on('data', (chunk: string) => {
      text += chunk
      if (text.length <= ANSWER_LIMIT) return
      response.destroy()
      resolve({ status: response.statusCode ?? 0, text: '' })
    })
  })
  asked.end()
  return promise
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function noArrival(url: string, missed: ProbeFailure): Finding {
  if ('code' in missed) {
    const { code, reason } = missed
    const isCertificate = /CERT|SIGNED|ISSUER|VERIFY/.test(code)
    if (isCertificate)
      return failure('proxy', phrase('base_url_certificate', { url, code }), phrase('browsers_refuse_it'))
    if (DNS_ERROR_CODES.includes(code))
      return warning(
        'proxy',
        phrase('base_url_unknown', { host: new URL(url).hostname, code }),
        phrase('enter_into_dns'),
      )
    if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER')
      return failure('proxy', phrase('base_url_plain_http', { url, code }), phrase('check_base_url_port'))
    if (code.startsWith('HPE_'))
      return failure('proxy', phrase('base_url_not_http', { url, code }), phrase('check_base_url_port'))
    return warning('proxy', phrase('nothing_at_base_url', { url, code: reason }), phrase('start_and_ask_again'))
  }
  const { status } = missed
  if (GATEWAY_ERROR_STATUSES.includes(status))
    return warning('proxy', phrase('nothing_behind_proxy', { url, status }), phrase('start_and_check_proxy'))
  return failure('proxy', phrase('something_else_answers', { url, status }), phrase('check_base_url_and_secrets'))
}

function hostFinding({ host }: Arrival, { settings }: ProxyProbeOptions): Finding {
  const expected = new URL(settings.BASE_URL).host
  if (host.toLowerCase() === expected) return good('proxy host', phrase('host_arrives', { host: expected }))
  const seen = phrase('host_arrives_wrong', { host: sanitize(host, 100), expected })
  return warning('proxy host', seen, phrase('pass_host'))
}

/** Whether there is no proxy in between, which would have to pass on headers. */
function isDirect({ BASE_URL, PORT, TLS_CERT_FILE }: ProxyProbeOptions['settings']): boolean {
  return portIn(BASE_URL) === PORT && (isLoopback(BASE_URL) || TLS_CERT_FILE !== undefined)
}

function protoFinding({ proto }: Arrival, { settings }: ProxyProbeOptions): Finding {
  const what = 'proxy proto'
  const expected = isSecure(settings) ? 'https' : 'http'
  if (isDirect(settings) || settings.TLS_CERT_FILE)
    return good(what, phrase('without_proxy_proto', { proto: expected }))
  // Menshen takes the scheme from BASE_URL, so a proxy need not send it.
  if (proto === '') return good(what, phrase('proto_by_base_url', { proto: expected }))
  if (proto === expected) return good(what, phrase('proto_arrives', { proto: expected }))
  return warning(what, phrase('proto_arrives_wrong', { proto: sanitize(proto), expected }), phrase('check_proto'))
}

function clientAddressFinding({ client, peer, isTrusted }: Arrival, { settings }: ProxyProbeOptions): Finding {
  const what = 'proxy client address'
  if (isDirect(settings)) return good(what, phrase('without_proxy'))
  if (client === FORGED_ADDRESS) return failure(what, phrase('forged_address_passes'), phrase('add_client_address'))
  const address = sanitize(peer)
  if (!isTrusted) return warning(what, phrase('proxy_not_trusted', { address }), phrase('trust_proxy', { address }))
  return good(what, phrase('client_address_arrives'))
}

function upgradeFinding(socket: Arrival | ProbeFailure, { isGateway }: ProxyProbeOptions): Finding {
  const what = 'proxy upgrade'
  if (!isGateway) return good(what, phrase('upgrade_not_needed'))
  if ('proof' in socket && socket.hasUpgrade) return good(what, phrase('upgrade_passes'))
  return warning(what, phrase('upgrade_lost'), phrase('pass_upgrade'))
}

// The doctor asks the Menshen that runs at BASE_URL how its request has arrived. Only a client that has our secret can ask, and
// only we can answer.

export const CHALLENGE_HEADER = 'x-menshen-doctor'
/** Clocks of the machines behind one address may be a little apart. */
const VALID_MS = 60_000

export function newChallenge([key]: KeyList, now: number): string {
  const message = `${now}.${randomBytes(16).toString('base64url')}`
  return `${message}.${sign(key, 'question', message)}`
}

/** The proof for the answer; `undefined` if the challenge was not signed with our secret, or not recently. */
export function proofFor(challenge: string, keys: KeyList, now: number): string | undefined {
  const [, message, askedAt, signature] = /^((\d{1,15})\.[\w-]{22})\.([\w-]{43})$/.exec(challenge) ?? []
  if (message === undefined || signature === undefined || Math.abs(now - Number(askedAt)) > VALID_MS) return undefined
  const key = keys.find(one => isSame(signature, sign(one, 'question', message)))
  return key && sign(key, 'answer', challenge)
}

export function isProof(proof: string, challenge: string, [key]: KeyList): boolean {
  return isSame(proof, sign(key, 'answer', challenge))
}

function sign(key: Uint8Array, purpose: 'question' | 'answer', message: string): string {
  return createHmac('sha256', key).update(`${purpose} ${message}`).digest('base64url')
}

function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)]
  return one.length === other.length && timingSafeEqual(one, other)
}
