// menshen/assertion: for applications behind the gateway. Reads the user from the signed assertion, and loads nothing of the
// gateway.
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { MenshenError } from '../errors.ts'

export { MenshenError }

/** The gateway's claims about the user. A field that is longer than 512 bytes is left out. */
export interface AssertionClaims {
  /** Identifies the user permanently. With several providers, it differs for each user. */
  readonly sub: string
  readonly username: string
  readonly role: string
  readonly groups: readonly string[]
  readonly nickname?: string
  readonly email?: string
  readonly phone_number?: string
  readonly ou_id?: string
  readonly ou_name?: string
  /** The user's provider, if there are several. */
  readonly provider?: string
  readonly iss: string
  readonly aud: string
  /** Seconds since 1970. */
  readonly exp: number
}

/** The claims, with further fields that the configuration maps: `Assertion<'dept' | 'level'>`. */
export type Assertion<F extends string = never> = AssertionClaims & { readonly [K in F]?: string }

export interface AssertionOptions {
  /** Menshen's `BASE_URL`. */
  readonly issuer: string
  /** The audience of this application: its address in `UPSTREAM`; with forward-auth `CLIENT_ID`; or what the configuration names. */
  readonly audience: string
  /** The address of the keys, if this application cannot reach them below `issuer`. */
  readonly jwksUrl?: string
  /** The value of `IDENTITY_ASSERTION`, if it is set; otherwise `X-Menshen-Assertion`. */
  readonly header?: string
  /** Milliseconds since 1970; the system clock, unless a test has its own. */
  readonly now?: () => number
}

/** An `IncomingMessage`, a `Request`, or anything else with headers. */
export interface AssertionCarrier {
  readonly headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>
}

const HEADER = 'x-menshen-assertion'
const KEYS_PATH = '/_menshen/jwks.json'
const KEYS_DEADLINE_MS = 5000
/** Three keys take less than one of these. */
const MAX_JWKS_BYTES = 64 * 1024
/** An application has one or two issuers; if there are more than this, a client invents them. */
const MAX_KEY_SETS = 100

/** Each set fetches its keys when first needed, and again for an unknown key, at most twice a minute. */
const KEY_SETS = new Map<string, JWTVerifyGetKey>()

/**
 * Returns the user, if the request has an assertion that the gateway has signed for this very application.
 *
 * Rejects with a `MenshenError` otherwise: `assertion_missing`, `assertion_invalid`, or `keys_unavailable` if the gateway's
 * keys could not be fetched; `bad_settings` if an option is missing.
 */
export async function verifyAssertion<F extends string = never>(
  request: AssertionCarrier,
  options: AssertionOptions,
): Promise<Assertion<F>> {
  const { issuer, audience, keys } = readOptions(options)
  const token = tokenIn(request, options.header ?? HEADER)
  const payload = await verified(token, keys, {
    issuer,
    audience,
    algorithms: ['ES256'],
    requiredClaims: ['exp'],
    ...(options.now && { currentDate: new Date(options.now()) }),
  })
  // Every further field is text or absent, whatever `F` names.
  return readClaims(payload, { iss: issuer, aud: audience }) as Assertion<F>
}

/** jose skips a check whose expected value is `undefined`. */
function readOptions({ issuer, audience, jwksUrl }: Partial<AssertionOptions> = {}) {
  if (typeof audience !== 'string' || audience === '') throw badOption('audience', 'this application’s own audience')
  const url = webAddress(issuer)
  if (url?.pathname !== '/' || url.search !== '') throw badOption('issuer', 'BASE_URL of the gateway')
  const keysUrl = jwksUrl === undefined ? new URL(KEYS_PATH, url) : webAddress(jwksUrl)
  if (!keysUrl) throw badOption('jwksUrl', 'an http or https address')
  return { issuer: url.origin, audience, keys: keySetAt(keysUrl) }
}

function webAddress(text: unknown): URL | undefined {
  const url = typeof text === 'string' ? URL.parse(text) : null
  return url && /^https?:$/.test(url.protocol) ? url : undefined
}

function badOption(name: keyof AssertionOptions, expected: string): MenshenError {
  return new MenshenError('bad_settings', `verifyAssertion: ${name}: expected ${expected}`)
}

function tokenIn(request: Partial<AssertionCarrier> | null | undefined, header: string): string {
  const values = headerValues(request?.headers, header)
  const [value = '', ...more] = values
  if (more.length > 0) throw invalid('there are two of them')
  if (typeof value !== 'string') throw invalid('it is not text')
  if (value === '') throw new MenshenError('assertion_missing', `the request has no ${header} header`)
  return value
}

/** The values of the header, in any case. Anything other than one text is refused later. */
function headerValues(headers: unknown, name: string): unknown[] {
  if (typeof headers !== 'object' || headers === null) return []
  if ('get' in headers && typeof headers.get === 'function') return [headers.get(name) ?? '']
  const wanted = name.toLowerCase()
  const found = Object.entries(headers).filter(([given]) => given.toLowerCase() === wanted)
  return found.flatMap(([, value]) => value ?? [])
}

async function verified(token: string, keys: JWTVerifyGetKey, expected: Parameters<typeof jwtVerify>[2]) {
  try {
    return (await jwtVerify(token, keys, expected)).payload
  } catch (error) {
    if (error instanceof MenshenError) throw error
    // Without the cause, which contains the claims: an application would log them.
    throw invalid(error instanceof errors.JOSEError ? error.message : 'it cannot be read')
  }
}

function readClaims(payload: JWTPayload, { iss, aud }: Pick<AssertionClaims, 'iss' | 'aud'>): AssertionClaims {
  const { sub, username, role, groups, exp = 0 } = payload
  if (!isName(sub) || !isName(username) || !isName(role)) throw invalid('sub, username or role is missing')
  if (!Array.isArray(groups) || !groups.every(isText)) throw invalid('groups is not a list of names')
  const texts = Object.fromEntries(Object.entries(payload).filter(([, value]) => isText(value)))
  return { ...texts, sub, username, role, groups, iss, aud, exp }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isName(value: unknown): value is string {
  return isText(value) && value !== ''
}

function invalid(reason: string): MenshenError {
  return new MenshenError('assertion_invalid', `the assertion is not valid: ${reason}`)
}

function keySetAt(url: URL): JWTVerifyGetKey {
  const known = KEY_SETS.get(url.href)
  if (known) return known
  const [oldest] = KEY_SETS.keys()
  if (oldest !== undefined && KEY_SETS.size >= MAX_KEY_SETS) KEY_SETS.delete(oldest)
  const keys = createRemoteJWKSet(url, { timeoutDuration: KEYS_DEADLINE_MS, [customFetch]: boundedFetch })
  const keyFor: JWTVerifyGetKey = async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error
      throw new MenshenError('keys_unavailable', `no keys from ${url.href}`, error)
    }
  }
  KEY_SETS.set(url.href, keyFor)
  return keyFor
}

const boundedFetch: FetchImplementation = async (url, init) => {
  const response = await fetch(url, init)
  let size = 0
  const bound = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      size += chunk.byteLength
      if (size > MAX_JWKS_BYTES) controller.error(new Error(`more than ${MAX_JWKS_BYTES} bytes`))
      else controller.enqueue(chunk)
    },
  })
  return new Response(response.body?.pipeThrough(bound) ?? null, response)
}
