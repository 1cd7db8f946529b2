// Token requests to the provider (code, refresh token, introspection) and the reading of their answers.

import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { decodeJwt, type JWTPayload, SignJWT } from 'jose'
import { z } from 'zod'
import { errorFields, MenshenError } from '../errors.ts'
import { type Phrase, phrase, phrasedError, phraseIn, phraseOf, quoted } from '../text/text.ts'
import { getPath, notAccepted } from '../util/json-path.ts'
import { algorithmFor, readClientKey } from './client-key.ts'
import { causeOf } from './demands.ts'
import { endpointOf, type Metadata } from './discovery.ts'
import { askForTokensWithProof, type DpopKey, newDpopKey } from './dpop.ts'
import { type Answer, type BoundedFetch, NeverArrived, readAnswer, type WholeAnswer } from './fetch.ts'
import {
  authenticationIn,
  checkIdToken,
  type IdTokenAuthentication,
  InvalidToken,
  type ProviderSession,
  providerSessionIn,
  verifySigned,
} from './id-token.ts'
import { assertTls, usesMutualTls } from './mutual-tls.ts'
import { outlivesToken, type ProviderPlan, type Texts } from './plan.ts'
import type { ProviderConnection } from './provider-connection.ts'

/** What came back from a trip to the provider, and what was remembered of its beginning. */
export interface Redemption {
  readonly code: string
  readonly state: string
  readonly verifier?: string | undefined
  readonly nonce?: string | undefined
  /** When it began; absent where nothing was remembered. */
  readonly startedAt?: number | undefined
}

const RETRY_AFTER_MS = [100, 300]

export async function redeemCode(
  connection: ProviderConnection,
  { code, state, verifier, nonce, startedAt = connection.now() }: Redemption,
  discard: (tokens: TokenSet) => void = () => {},
): Promise<TokenSet> {
  const { plan, redirectUri } = connection
  const known = await connection.metadata.get()
  const grant = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    ...(verifier !== undefined && { code_verifier: verifier }),
  }
  const key = connection.dpop.isOn() ? newDpopKey() : undefined
  const answered = await askForTokens(connection, known, endpointOf(known, 'token'), grant, { key, state })
  const tokens = await readTokens(answered, connection, known)
  if (plan.kind !== 'oidc') return withProviderSession(connection, known, tokens)
  const { idToken, accessToken } = tokens
  const isNonce = (given: unknown) => given === nonce
  const check = async () => {
    if (!idToken) throw phrasedError('provider_answer', phrase('answer_unusable', { fields: 'id_token' }))
    const signedInSince = oldestSignIn(plan, startedAt)
    return checkIdToken(connection, known, idToken, { isNonce, accessToken, signedInSince })
  }
  const claims = await check().catch((error: unknown) => {
    discard(tokens)
    throw error
  })
  const providerSession = providerSessionIn(claims)
  const authentication = authenticationIn(claims, connection.now())
  return { ...tokens, claims, authentication, ...(providerSession ? { providerSession } : {}) }
}

/** A refusal names its cause, where the metadata or the answer points to one. */
async function readTokens(
  { answer, key }: AnsweredTokens,
  { plan, now, dpop }: ProviderConnection,
  known: Metadata,
): Promise<TokenSet> {
  try {
    const tokens = readTokenSet(await readAnswer(answer), plan, now(), key)
    if (key && !tokens.dpopKey) dpop.end()
    return tokens
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error
    const { code, status, said, description } = error
    const cause = causeOf(plan, known, { error: said ?? '', description })
    if (!cause) throw error
    const refusalCode = code === 'provider_refused' ? code : 'provider_answer'
    const sentence = phrase('with_cause', { seen: phraseOf(error) ?? quoted(error.message), cause: cause.what })
    throw new RefusalError(refusalCode, sentence, status, said, { remedy: cause.remedy })
  }
}

/** With `max_age`, the user has to have proved who they are not longer ago than that (OpenID Connect Core 3.1.2.1). */
function oldestSignIn({ authorization }: ProviderPlan, startedAt: number): number | undefined {
  const { max_age: maxAge = '' } = authorization.params
  return /^\d{1,10}$/.test(maxAge) ? startedAt - Number(maxAge) * 1000 : undefined
}

/** Nobody is kept out for want of a session id: without one, the provider can only end all sessions of a user. */
async function withProviderSession(
  connection: ProviderConnection,
  known: Metadata,
  tokens: TokenSet,
): Promise<TokenSet> {
  if (!tokens.idToken || !known.endpoints.jwks || !known.issuer) return tokens
  try {
    const providerSession = providerSessionIn(await verifySigned(connection, known, tokens.idToken, ['exp']))
    return providerSession ? { ...tokens, providerSession } : tokens
  } catch (error) {
    connection.report('id_token_unusable', { provider: connection.plan.id, ...errorFields(error) })
    return tokens
  }
}

interface RefreshedTokens {
  readonly refreshToken: string
  /** The one of the sign-in: a refreshed one has to be about the same user. */
  readonly idToken?: string | undefined
  /** To which the tokens are bound. Tokens without one stay without, unless the provider demands it. */
  readonly dpopKey?: DpopKey | undefined
}

export async function refreshTokens(
  connection: ProviderConnection,
  { refreshToken, idToken, dpopKey }: RefreshedTokens,
): Promise<TokenSet> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const url = known.endpoints.refresh ?? endpointOf(known, 'token')
  const grant = { grant_type: 'refresh_token', refresh_token: refreshToken, ...refreshParams(connection) }
  // Before the refresh token is spent: its answer is of no use without them.
  if (plan.kind === 'oidc') await connection.keys.warm()
  const request = () => askForTokens(connection, known, url, grant, { key: dpopKey })
  const answered = await retryUnarrived(request, connection.timeoutMs)
  const tokens = await readTokens(answered, connection, known)
  if (plan.kind !== 'oidc' || !tokens.idToken) return tokens
  const { idToken: received } = tokens
  const verify = async () => ({
    ...tokens,
    claims: await checkRefreshed(connection, known, received, tokens, idToken),
  })
  try {
    return await verify()
  } catch (error) {
    if (!lacksKeys(error)) throw error
    const { idToken: _, ...others } = tokens
    return { ...others, verify }
  }
}

/** The keys cannot be fetched, or the provider has not published its new one yet: that proves nothing of the token. */
function lacksKeys(error: unknown): boolean {
  if (error instanceof InvalidToken) return error.claim === 'key'
  return error instanceof MenshenError && error.code !== 'provider_refused'
}

/** The provider speaks of another user than the session belongs to. */
export class SubjectChanged extends MenshenError {
  constructor(source: 'id_token' | 'user info') {
    super('provider_refused', `the ${source} after the refresh is about another user`)
  }
}

/** `$redirect_uri` is ours: some want it at the refresh too. */
function refreshParams({ plan, redirectUri }: ProviderConnection): Record<string, string> {
  const entries = Object.entries(plan.refreshParams)
  return Object.fromEntries(entries.map(([name, text]) => [name, text === '$redirect_uri' ? redirectUri : text]))
}

/** The claims of a valid one. It keeps the issuer and the user, and the nonce if it has one (OpenID Connect Core 12.2). */
async function checkRefreshed(
  connection: ProviderConnection,
  known: Metadata,
  idToken: string,
  { accessToken }: TokenSet,
  before: string | undefined,
): Promise<JWTPayload> {
  const old: JWTPayload = before === undefined ? {} : decodeJwt(before)
  const isNonce = (given: unknown) => given === undefined || old.nonce === undefined || given === old.nonce
  const assertSame = ({ sub, iss }: JWTPayload) => {
    if (before === undefined) return
    if (iss !== old.iss) throw new MenshenError('provider_refused', 'the refreshed id_token is of another issuer')
    if (sub === undefined) throw new MenshenError('provider_refused', 'the refreshed id_token names no user')
    if (sub !== old.sub) throw new SubjectChanged('id_token')
  }
  try {
    const claims = await checkIdToken(connection, known, idToken, { isNonce, accessToken })
    assertSame(claims)
    return claims
  } catch (error) {
    // One that is not even valid proves nothing, but what it says decides whether the session can live on.
    assertSame(claimsOf(idToken) ?? old)
    throw error
  }
}

function claimsOf(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

/**
 * Only where the request cannot have arrived: a refresh token that rotates must not be spent twice. And only while there
 * is time: all tries together take no longer than two calls may.
 */
export async function retryUnarrived<T>(request: () => Promise<T>, timeoutMs: number): Promise<T> {
  const startedAt = performance.now()
  for (const wait of RETRY_AFTER_MS) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof NeverArrived) || performance.now() - startedAt > timeoutMs / 2) throw error
      await pause(wait)
    }
  }
  return request()
}

/** What the provider says of a token that somebody else was given (RFC 7662); `undefined` if it cannot be asked. */
export async function introspectToken(
  connection: ProviderConnection,
  token: string,
  fetch: BoundedFetch = connection.fetch,
): Promise<unknown> {
  const known = await connection.metadata.get()
  if (!known.endpoints.introspection) return undefined
  const response = await askAsClient({ ...connection, fetch }, known, known.endpoints.introspection, { token })
  const { status, body } = await readAnswer(response)
  if (status !== 200)
    throw new RefusalError('provider_answer', quoted(`introspection answered ${status}`), status, errorCodeIn(body))
  return body
}

// Requests in which the client proves who it is, as the provider wants them: the names, the place of the parameters and the
// headers are those of the plan.

/** How a request is sent where it is not the standard's form. */
interface RequestShape {
  readonly method?: string
  readonly as: 'form' | 'json' | 'query'
  readonly names: Texts
  readonly headers: Texts
}

const STANDARD: RequestShape = { as: 'form', names: {}, headers: {} }

export async function askAsClient(
  { plan, now, fetch }: Pick<ProviderConnection, 'plan' | 'now' | 'fetch'>,
  known: Metadata,
  url: string,
  given: Texts,
  shape: RequestShape = STANDARD,
): Promise<WholeAnswer> {
  const params = new URLSearchParams(given)
  const proof = await proveClient(plan, known, url, now, params)
  return sendShaped(fetch, url, params, { ...shape, headers: { ...proof, ...shape.headers } })
}

function sendShaped(
  fetch: BoundedFetch,
  url: string,
  given: URLSearchParams,
  { method = 'POST', as, names, headers }: RequestShape,
): Promise<WholeAnswer> {
  const params = renamed(given, names)
  if (as === 'form') return fetch(url, { method, headers, body: params })
  if (as === 'json') {
    const body = JSON.stringify(Object.fromEntries(params))
    return fetch(url, { method, headers: { ...headers, 'content-type': 'application/json' }, body })
  }
  const target = new URL(url)
  for (const [name, value] of params) target.searchParams.set(name, value)
  return fetch(target.href, { method, headers })
}

/** As in the authorization address: what is renamed to nothing is left out. */
function renamed(given: URLSearchParams, names: Texts): URLSearchParams {
  if (Object.keys(names).length === 0) return given
  const params = [...given].map(([name, value]): [string, string] => [names[name] ?? name, value])
  return new URLSearchParams(params.filter(([name]) => name))
}

interface AnsweredTokens {
  readonly answer: WholeAnswer
  /** By which the request was proven. */
  readonly key: DpopKey | undefined
}

/** For every grant. `state` is the one that came back with the code, `key` the one that the tokens are to be bound to. */
export function askForTokens(
  connection: ProviderConnection,
  known: Metadata,
  url: string,
  { redirect_uri, ...grant }: Texts,
  { key, state }: { readonly key: DpopKey | undefined; readonly state?: string },
): Promise<AnsweredTokens> {
  const { plan, dpop, now } = connection
  const { tokenRequest } = plan
  const given = {
    ...grant,
    ...(redirect_uri !== undefined && tokenRequest.redirectUri && { redirect_uri }),
    ...(state !== undefined && tokenRequest.state && { state }),
  }
  return askForTokensWithProof(dpop, { method: 'POST', url, now }, key, proof =>
    askAsClient(connection, known, url, given, { ...tokenRequest, headers: { ...tokenRequest.headers, ...proof } }),
  )
}

/** Puts the proof into the parameters, or returns it as a header. `url` is where they go. */
async function proveClient(
  plan: ProviderPlan,
  known: Metadata,
  url: string,
  now: () => number,
  params: URLSearchParams,
): Promise<Texts> {
  const { clientId, clientSecret, clientKey } = plan
  const method = plan.clientAuth ?? preferredClientAuth(known.clientAuths)
  if (method === 'private_key_jwt' && clientKey) {
    params.set('client_id', clientId)
    params.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    params.set('client_assertion', await clientAssertion(plan, known, url, now()))
    return {}
  }
  if (usesMutualTls({ clientAuth: method })) {
    assertTls(url)
    params.set('client_id', clientId)
    return {}
  }
  if (method === 'none') {
    params.set('client_id', clientId)
    return {}
  }
  if (!clientSecret) throw new MenshenError('bad_settings', 'the client has no secret')
  if (method !== 'post') return { authorization: basic(clientId, clientSecret.reveal()) }
  params.set('client_id', clientId)
  params.set('client_secret', clientSecret.reveal())
  return {}
}

/** Not a sign more than has to be is encoded: providers that do not decode at all would take it for another client. */
function basic(clientId: string, secret: string): string {
  const credentials = `${formEncoded(clientId)}:${formEncoded(secret)}`
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

/** RFC 6749, 2.3.1: as a value in a form. */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/** Basic is the standard's default; a provider that lists only post is asked that way. */
export function preferredClientAuth(supported: readonly string[] | undefined): 'basic' | 'post' {
  if (!supported || supported.includes('client_secret_basic')) return 'basic'
  return supported.includes('client_secret_post') ? 'post' : 'basic'
}

/** The JWT by which a client proves itself (`private_key_jwt`, RFC 7523). */
async function clientAssertion(
  { clientId, clientKey, assertion }: ProviderPlan,
  known: Metadata,
  url: string,
  now: number,
): Promise<string> {
  const signer = readClientKey(clientKey?.reveal() ?? '')
  const alg = algorithmFor(signer, assertion.algorithm, known.assertionAlgorithms)
  const kid = assertion.keyId ?? signer.kid
  const seconds = Math.floor(now / 1000)
  return new SignJWT({
    iss: clientId,
    sub: clientId,
    aud: assertionAudience(assertion.audience, known, url),
    jti: randomUUID(),
    iat: seconds,
    nbf: seconds,
    exp: seconds + 60,
  })
    .setProtectedHeader({
      alg,
      typ: 'JWT',
      ...(kid === undefined ? {} : { kid }),
      ...(assertion.thumbprint === undefined ? {} : { 'x5t#S256': assertion.thumbprint }),
    })
    .sign(signer.key)
}

/** The issuer alone, as RFC 7523 is about to say, unless the provider wants its token endpoint named. */
function assertionAudience(
  wanted: ProviderPlan['assertion']['audience'],
  { issuer, endpoints }: Metadata,
  url: string,
): string | string[] {
  const { token = url } = endpoints
  if (wanted === 'both' && issuer !== undefined) return [issuer, token]
  return wanted === 'issuer' && issuer !== undefined ? issuer : token
}

// Reads the answer of the token endpoint: unknown JSON in, a token set out, or an error that says what was wrong without
// repeating the answer (it can carry tokens and phone numbers).

export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken?: string
  /** Seconds. */
  readonly expiresIn: number
  /** When the answer arrived. */
  readonly receivedAt: number
  /**
   * When the refresh token expires; far in the future if the provider does not say. Absent if the session ends with its access
   * token, or if the answer has nothing about it.
   */
  readonly refreshEndsAt?: number
  readonly idToken?: string
  /** Of the id_token, once it has been checked. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly providerSession?: ProviderSession
  /** Of the same id_token. */
  readonly authentication?: IdTokenAuthentication
  /** To which the access token is bound; absent if it is not (DPoP). */
  readonly dpopKey?: DpopKey
  /** The whole answer, for providers that say in it who the user is. */
  readonly answer?: unknown
  /** Present if the keys for its id_token are not available: verifies it, and resolves to all tokens; see late-verification.ts. */
  readonly verify?: () => Promise<TokenSet>
}

/** The provider has answered, and said no. Decide by `status` and `said`. */
export class RefusalError extends MenshenError {
  readonly status: number
  /** The error code of its answer, RFC 6749's or an envelope's, if it is one that can be shown. */
  readonly said: string | undefined
  /** The sentence that came with it: to look for a cause, never to be shown. */
  readonly description: string | undefined
  /** What is behind it and what to do, where that is known. */
  readonly remedy: Phrase | undefined

  constructor(code: RefusalCode, sentence: Phrase, status: number, said?: string, more: RefusalDetails = {}) {
    super(code, phraseIn('en', sentence), undefined, sentence)
    this.status = status
    this.said = said
    this.description = more.description
    this.remedy = more.remedy
  }
}

type RefusalCode = 'provider_refused' | 'provider_answer'

interface RefusalDetails {
  readonly description?: string | undefined
  readonly remedy?: Phrase | undefined
}

// Ten years: far beyond any real token, and far from where milliseconds stop being exact.
const LONGEST_LIFETIME = 10 * 365 * 24 * 3600

export const lifetime = z
  .union([
    z.int(),
    z
      .string()
      .regex(/^\d{1,10}$/)
      .transform(Number),
  ])
  .pipe(z.int().min(1).max(LONGEST_LIFETIME))

// RFC 6749, appendix A: what a token is made of, and so what can stand in a header.
const token = z.string().regex(/^[\x21-\x7e]+$/)
const tokenTypes = z.string().regex(/^(bearer|dpop)$/i)

// Made once: to make a schema takes longer than to use it.
const tokenAnswer = z.object({
  access_token: token,
  token_type: tokenTypes.nullish(),
  refresh_token: z.union([token, z.literal('')]).nullish(),
  expires_in: lifetime.nullish(),
  id_token: z.unknown(),
})

/** Keycloak, Authing and others; GitHub, Feishu and others. */
const REFRESH_LIFETIMES = ['refresh_expires_in', 'refresh_token_expires_in']

/** Keycloak says 0 for one that never expires. What is not a lifetime says nothing. */
function refreshEnd(body: object, hasRefreshToken: boolean, now: number): number | undefined {
  const known = REFRESH_LIFETIMES.map(name => lifetime.safeParse(getPath(body, name))).find(({ success }) => success)
  if (known?.data !== undefined) return now + known.data * 1000
  return hasRefreshToken ? now + LONGEST_LIFETIME * 1000 : undefined
}

/** Verdicts on a code or a refresh token; everything else may be different in a moment. */
const VERDICTS = ['invalid_grant', 'invalid_token']

/** `key` is the one that the token request was proven by; the token is bound to it if the answer says so. */
export function readTokenSet(answer: Answer, plan: ProviderPlan, now: number, key?: DpopKey): TokenSet {
  const body = readAccepted(answer, plan.tokenAnswer, [...VERDICTS, ...plan.refreshEnds])
  const { names, lifetimeSeconds, tokenType } = plan.tokenAnswer
  const named = (name: string) => getPath(body, names[name] ?? name)
  const given = Object.fromEntries(Object.keys(tokenAnswer.shape).map(name => [name, named(name)]))
  const demanded = [
    ...(tokenType === 'required' ? ['token_type'] : []),
    ...(lifetimeSeconds === undefined ? ['expires_in'] : []),
  ]
  const isBound = /^dpop$/i.test(String(given.token_type))
  if (isBound && key === undefined) throw wrongBinding(phrase('tokens_bound_to_key'), phrase('set_dpop'))
  const { access_token, refresh_token, expires_in, id_token } = read(given, demanded, plan.kind === 'oidc')
  // RFC 9449, 5: a client that relies on the protection discards the answer.
  if (key !== undefined && !isBound && plan.dpop === 'on')
    throw wrongBinding(phrase('tokens_not_bound'), phrase('bind_tokens'))
  const refreshToken = plan.refreshes && refresh_token ? refresh_token : undefined
  const refreshEndsAt = outlivesToken(plan) ? refreshEnd(body, refreshToken !== undefined, now) : undefined
  return {
    accessToken: access_token,
    expiresIn: expires_in ?? lifetimeSeconds ?? 0,
    receivedAt: now,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(refreshEndsAt === undefined ? {} : { refreshEndsAt }),
    ...(id_token ? { idToken: id_token } : {}),
    ...(isBound && key !== undefined ? { dpopKey: key } : {}),
    answer: body,
  }
}

function wrongBinding(seen: Phrase, remedy: Phrase): RefusalError {
  return new RefusalError('provider_answer', seen, 200, undefined, { remedy })
}

interface Expected {
  readonly at?: string | undefined
  readonly success: ProviderPlan['tokenAnswer']['success']
}

/** The answer proper, once its status and its body have said that it is one: status 200 alone does not. */
export function readAccepted({ status, body }: Answer, { at, success }: Expected, verdicts: readonly string[]): object {
  const codes = errorCodes(body)
  const verdict = codes.find(code => verdicts.includes(code))
  if (verdict !== undefined)
    throw new RefusalError('provider_refused', answered(status, verdict), status, verdict, descriptionIn(body))
  const isError = status !== 200 || (!Object.hasOwn(success, 'error') && saysError(body))
  if (isError) {
    const said = codes.find(isShown)
    throw new RefusalError('provider_answer', answered(status, said), status, said, descriptionIn(body))
  }
  if (body === undefined) throw phrasedError('provider_answer', phrase('answer_not_json'))
  const wrong = notAccepted(body, success)
  if (wrong !== undefined)
    throw new RefusalError('provider_answer', phrase('answer_no_success', { wrong }), status, codes.find(isShown))
  const proper = at === undefined ? body : getPath(body, at)
  if (typeof proper !== 'object' || proper === null || Array.isArray(proper))
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: at ?? phrase('the_whole') }))
  return proper
}

function answered(status: number, error: string | undefined): Phrase {
  return error ? phrase('provider_answered_with', { status, error }) : phrase('provider_answered', { status })
}

/** The error code of an answer, if it is one that can be shown. */
export function errorCodeIn(body: unknown): string | undefined {
  return errorCodes(body).find(isShown)
}

function isShown(code: string): boolean {
  return /^([a-z_]{1,40}|\d{1,10})$/.test(code)
}

/** RFC 6749's `error`, and the codes of envelopes. */
function errorCodes(body: unknown): string[] {
  const codes: string[] = []
  for (const name of ERROR_CODES) {
    const found = getPath(body, name)
    if (typeof found === 'string' || typeof found === 'number') codes.push(String(found))
  }
  return codes
}

const ERROR_CODES = ['error', 'errcode', 'code']

function descriptionIn(body: unknown): Pick<RefusalDetails, 'description'> {
  const found = getPath(body, 'error_description')
  return typeof found === 'string' ? { description: found.slice(0, 1000) } : {}
}

/** `code` and `errcode` can mean anything, so they are errors only where `success` says what they have to be. */
function saysError(body: unknown): boolean {
  return !Array.isArray(body) && Boolean(getPath(body, 'error'))
}

function read(given: Record<string, unknown>, demanded: readonly string[], isOidc: boolean) {
  const result = tokenAnswer.safeParse(given)
  const odd = result.error?.issues.map(issue => issue.path.join('.') || 'the whole') ?? []
  const missing = demanded.filter(name => given[name] === undefined || given[name] === null)
  const idToken = typeof given.id_token === 'string' ? given.id_token : undefined
  // Where it is not asked for, an odd one is none.
  const oddIdToken = isOidc && idToken === undefined && (given.id_token ?? undefined) !== undefined ? ['id_token'] : []
  const places = new Set([...odd, ...missing, ...oddIdToken])
  if (!result.success || places.size > 0)
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: [...places].join(', ') }))
  return { ...result.data, id_token: idToken }
}
