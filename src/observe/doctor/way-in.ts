// The way from a browser to the running Menshen: asks BASE_URL as a browser on this machine would, and looks at what has
// arrived at the other end of the proxies in between.
import { request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { z } from 'zod'
import { OWN_PATHS } from '../../own-paths.ts'
import type { KeyList } from '../../session/keys/derived-keys.ts'
import { isLoopback, portIn } from '../../settings/deployment.ts'
import { printable } from '../../settings/json-place.ts'
import { isSecure, type Settings } from '../../settings/read.ts'
import { codeOf, type Finding, failure, good, type Probe, warning } from './finding.ts'
import { isProof, newQuestion, QUESTION_HEADER } from './question.ts'

/** Of the addresses that belong to nobody: whoever believes it believes anybody. */
const MADE_UP_ADDRESS = '192.0.2.1'
const ANSWER_LIMIT = 16 * 1024
const NOTHING_BEHIND = [502, 503, 504]

const arrival = z.object({
  proof: z.string(),
  host: z.string(),
  proto: z.string(),
  /** Who sent it, as Menshen sees it. */
  client: z.string(),
  /** At the other end of the connection. */
  peer: z.string(),
  isTrusted: z.boolean(),
  hasUpgrade: z.boolean(),
})
export type Arrival = z.infer<typeof arrival>

export interface WayInOptions {
  readonly settings: Pick<Settings, 'BASE_URL' | 'PORT' | 'TLS_CERT_FILE' | 'TRUSTED_PROXIES'>
  readonly key: KeyList
  /** Whether requests of an application pass through Menshen, and so its WebSockets. */
  readonly isGateway: boolean
  readonly timeoutMs: number
  readonly now: () => number
}

export function wayInProbe(options: WayInOptions): Probe {
  return { name: 'proxy', run: () => probeWayIn(options) }
}

async function probeWayIn(options: WayInOptions): Promise<Finding[]> {
  const plain = await ask(options, {})
  if (!('proof' in plain)) return [noArrival(options.settings.BASE_URL, plain)]
  const socket = await ask(options, SOCKET_HEADERS)
  const findings = [judgeHost(plain, options), judgeProto(plain, options), judgeClient(plain, options)]
  return [...findings, judgeUpgrade(socket, options)]
}

/** Whether the Menshen of these settings is the one that answers at BASE_URL. */
export async function isRunning(options: WayInOptions): Promise<boolean> {
  return 'proof' in (await ask(options, {}))
}

type Missed = { readonly code: string } | { readonly status: number }

const SOCKET_HEADERS = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}

async function ask({ settings, key, timeoutMs, now }: WayInOptions, more: object): Promise<Arrival | Missed> {
  const question = newQuestion(key, now())
  const headers = {
    [QUESTION_HEADER]: question,
    'x-forwarded-for': MADE_UP_ADDRESS,
    accept: 'application/json',
    ...more,
  }
  try {
    const { status, text } = await get(settings.BASE_URL + OWN_PATHS.doctor, headers, timeoutMs)
    const found = arrival.safeParse(parse(text))
    return found.success && isProof(found.data.proof, question, key) ? found.data : { status }
  } catch (error) {
    return { code: codeOf(error) }
  }
}

/** Not by fetch, which sends no Upgrade. */
function get(
  url: string,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const request = url.startsWith('https:') ? requestSecure : requestPlain
  const asked = request(url, { headers, agent: false, signal: AbortSignal.timeout(timeoutMs) })
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

function noArrival(baseUrl: string, missed: Missed): Finding {
  if ('code' in missed) {
    const isCertificate = /CERT|SIGNED|ISSUER/.test(missed.code)
    if (isCertificate)
      return failure(
        'proxy',
        `the certificate of ${baseUrl} is not accepted (${missed.code})`,
        'Browsers will not accept it either, unless they know its authority.',
      )
    if (missed.code.startsWith('HPE_'))
      return failure(
        'proxy',
        `what answers at ${baseUrl} does not speak HTTP (${missed.code})`,
        'Check the scheme and the port of BASE_URL.',
      )
    return warning(
      'proxy',
      `nothing answers at ${baseUrl} (${missed.code})`,
      'Start Menshen, and ask again to have the way to it looked at.',
    )
  }
  if (NOTHING_BEHIND.includes(missed.status))
    return warning(
      'proxy',
      `a proxy answers at ${baseUrl}, but nothing behind it (${missed.status})`,
      'Start Menshen, and check that the proxy leads to HOST and PORT.',
    )
  return failure(
    'proxy',
    `something else than the Menshen of these settings answers at ${baseUrl} (status ${missed.status})`,
    'Check BASE_URL, that the proxy leads all paths to Menshen, and that it was started with the same SECRET and CLIENT_SECRET.',
  )
}

function judgeHost({ host }: Arrival, { settings }: WayInOptions): Finding {
  const expected = new URL(settings.BASE_URL).host
  if (host.toLowerCase() === expected) return good('proxy host', `Host arrives as ${expected}`)
  return warning(
    'proxy host',
    `Host arrives as ${printable(host, 100)}, not as ${expected}`,
    'Let the proxy pass on the Host of the browser (nginx: proxy_set_header Host $http_host).',
  )
}

/** Without a proxy in between there is nothing to pass on. */
function isDirect({ BASE_URL, PORT, TLS_CERT_FILE }: WayInOptions['settings']): boolean {
  return portIn(BASE_URL) === PORT && (isLoopback(BASE_URL) || TLS_CERT_FILE !== undefined)
}

function judgeProto({ proto }: Arrival, { settings }: WayInOptions): Finding {
  const what = 'proxy proto'
  const expected = isSecure(settings) ? 'https' : 'http'
  if (isDirect(settings) || settings.TLS_CERT_FILE) return good(what, `${expected}, without a proxy in between`)
  // Menshen takes the scheme from BASE_URL, so that a proxy need not say it.
  if (proto === '') return good(what, `the proxy does not say it: BASE_URL says ${expected}`)
  if (proto === expected) return good(what, `X-Forwarded-Proto arrives as ${expected}`)
  const seen = `X-Forwarded-Proto arrives as ${printable(proto)}, but BASE_URL is ${expected}`
  return warning(what, seen, 'Check the scheme of BASE_URL, and what the proxy says (nginx: $scheme).')
}

function judgeClient({ client, peer, isTrusted }: Arrival, { settings }: WayInOptions): Finding {
  const what = 'proxy client address'
  if (isDirect(settings)) return good(what, 'without a proxy in between')
  if (client === MADE_UP_ADDRESS)
    return failure(
      what,
      'the proxy passes on an X-Forwarded-For that anybody can make up',
      'Let the proxy add the address that it sees (nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for).',
    )
  if (!isTrusted)
    return warning(
      what,
      `the proxy at ${printable(peer)} is not trusted: all visitors seem to be one`,
      `TRUSTED_PROXIES=${printable(peer)}`,
    )
  return good(what, 'X-Forwarded-For arrives with what the proxy has seen')
}

function judgeUpgrade(socket: Arrival | Missed, { isGateway }: WayInOptions): Finding {
  const what = 'proxy upgrade'
  if (!isGateway) return good(what, 'no application behind Menshen: WebSockets do not pass through it')
  if ('proof' in socket && socket.hasUpgrade) return good(what, 'WebSockets can pass')
  return warning(
    what,
    'Upgrade does not arrive: WebSockets of the application cannot pass',
    "Let the proxy pass it on (nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection 'upgrade').",
  )
}
