// Token requests to the provider (for a code, a refresh token and other grants) and the reading of their responses. Errors say what
// is wrong without repeating the response, which carries tokens.

import { setTimeout as pause } from 'node:timers/promises'
import { decodeJwt, type JWTPayload } from 'jose'
import { z } from 'zod'
import { errorFields, MenshenError } from '../errors.ts'
import { type Phrase, phrase, phrasedError } from '../text/text.ts'
import { getPath } from '../util/json-path.ts'
import { requestAsClient } from './client-auth.ts'
import type { ProviderConnection } from './connection.ts'
import { endpointOf, type Metadata } from './discovery.ts'
import { type DpopKey, newDpopKey, requestTokensWithProof } from './dpop.ts'
import { type ProviderAnswer, readAnswer, UnsentRequestError, type WholeAnswer } from './fetch.ts'
import {
  authenticationIn,
  checkIdToken,
  type IdTokenAuthentication,
  InvalidToken,
  mayBecomeValid,
  type ProviderSession,
  providerSessionIn,
  unverifiedClaims,
  verifySigned,
} from './id-token.ts'
import { outlivesToken, type ProviderPlan, type Texts } from './plan.ts'
import { RefusalError, readAccepted, withCause } from './refusal.ts'

export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken?: string
  /** Seconds. */
  readonly expiresIn: number
  /** When the response arrived. */
  readonly receivedAt: number
  /**
   * When the refresh token expires; far in the future if the provider does not say. Absent if the session ends with its access
   * token, or if the answer has nothing about it.
   */
  readonly refreshEndsAt?: number
  readonly idToken?: string
  /** The claims of the id_token, once it has been checked. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly providerSession?: ProviderSession
  /** When and how the user authenticated, according to the same id_token. */
  readonly authentication?: IdTokenAuthentication
  /** The key to which the access token is bound; absent if it is not (DPoP). */
  readonly dpopKey?: DpopKey
  /** The whole answer, for providers that identify the user in it. */
  readonly answer?: unknown
  /** Present if its id_token cannot be verified yet; see late-verification.ts. */
  readonly unverified?: UnverifiedIdToken
}

export interface UnverifiedIdToken {
  readonly error: unknown
  /** Verifies it, and resolves to all tokens. */
  verify(): Promise<TokenSet>
}

/** The response is about another user than the session. */
export class SubjectMismatch extends MenshenError {
  constructor(source: 'id_token' | 'user info') {
    super('provider_refused', `the ${source} after the refresh is about another user`)
  }
}

/** The parameters of a callback, and what was stored when its attempt started. */
export interface Redemption {
  readonly code: string
  readonly state: string
  readonly verifier?: string | undefined
  readonly nonce?: string | undefined
  /** When the attempt started; absent if nothing was stored. */
  readonly startedAt?: number | undefined
}

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
  const answered = await requestTokens(connection, known, endpointOf(known, 'token'), grant, { key, state })
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
    throw error instanceof RefusalError ? withCause(error, plan, known) : error
  }
}

/** With `max_age`, the earliest time at which the user may have authenticated (OpenID Connect Core 3.1.2.1). */
function oldestSignIn({ authorization }: ProviderPlan, startedAt: number): number | undefined {
  const { max_age: maxAge = '' } = authorization.params
  return /^\d{1,10}$/.test(maxAge) ? startedAt - Number(maxAge) * 1000 : undefined
}

/** A sign-in needs no session id: without one, the provider can only end all sessions of a user. */
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
  /** The id_token of the sign-in: a refreshed one must be about the same user. */
  readonly idToken?: string | undefined
  /** The key to which the tokens are bound. Unbound tokens stay unbound unless the provider demands DPoP. */
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
  // Before the refresh token is spent, because its answer is of no use without the keys.
  if (plan.kind === 'oidc') await connection.keys.warm()
  const request = () => requestTokens(connection, known, url, grant, { key: dpopKey })
  const answered = await retryUnsent(request, connection.timeoutMs)
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
    if (!mayVerifyLater(error)) throw error
    const { idToken: _, ...others } = tokens
    return { ...others, unverified: { error, verify } }
  }
}

/**
 * The keys cannot be fetched, the provider has not published its new one yet, or a clock is wrong, which proves nothing about the
 * token.
 */
function mayVerifyLater(error: unknown): boolean {
  if (error instanceof InvalidToken) return mayBecomeValid(error)
  return error instanceof MenshenError && error.code !== 'provider_refused'
}

/** `$redirect_uri` is our redirect address, which some providers also want in a refresh. */
function refreshParams({ plan, redirectUri }: ProviderConnection): Record<string, string> {
  const entries = Object.entries(plan.refreshParams)
  return Object.fromEntries(entries.map(([name, text]) => [name, text === '$redirect_uri' ? redirectUri : text]))
}

/**
 * The claims of a valid refreshed id_token. It must have the same issuer and user, and the same nonce if it has one (OpenID
 * Connect Core 12.2).
 */
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
    if (iss !== old.iss) throw new MenshenError('provider_refused', 'the refreshed id_token has a different issuer')
    if (sub === undefined) throw new MenshenError('provider_refused', 'the refreshed id_token has no sub')
    if (sub !== old.sub) throw new SubjectMismatch('id_token')
  }
  try {
    const claims = await checkIdToken(connection, known, idToken, { isNonce, accessToken })
    assertSame(claims)
    return claims
  } catch (error) {
    // An invalid id_token proves nothing, but its claims decide whether the session can continue.
    assertSame(unverifiedClaims(idToken) ?? old)
    throw error
  }
}

/**
 * Sends another grant to the token endpoint. It must change nothing at the provider, because it is sent again if it cannot have
 * arrived.
 */
export async function requestGrant(connection: ProviderConnection, grant: Texts): Promise<object> {
  const { tokenAnswer } = connection.plan
  const known = await connection.metadata.get()
  const url = endpointOf(known, 'token')
  const request = () => requestTokens(connection, known, url, grant, { key: undefined })
  const { answer } = await retryUnsent(request, connection.timeoutMs)
  return withStandardNames(readAccepted(await readAnswer(answer), tokenAnswer, FINAL_ERRORS), tokenAnswer.names)
}

const RETRY_DELAYS_MS = [100, 300]

/**
 * Sends a request again only if it cannot have arrived, because a refresh token that rotates must not be spent twice, and only
 * while there is time: all tries together take no longer than two calls may.
 */
async function retryUnsent<T>(request: () => Promise<T>, timeoutMs: number): Promise<T> {
  const startedAt = performance.now()
  for (const wait of RETRY_DELAYS_MS) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof UnsentRequestError) || performance.now() - startedAt > timeoutMs / 2) throw error
      await pause(wait)
    }
  }
  return request()
}

interface AnsweredTokens {
  readonly answer: WholeAnswer
  /** The key that signed the proof of the request (DPoP). */
  readonly key: DpopKey | undefined
}

/** Sends any grant. `state` is the one that came back with the code; `key` is the one that the tokens are to be bound to. */
function requestTokens(
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
  return requestTokensWithProof(dpop, { method: 'POST', url, now }, key, proof =>
    requestAsClient(connection, known, url, given, { ...tokenRequest, headers: { ...tokenRequest.headers, ...proof } }),
  )
}

// The response of the token endpoint.

/** Ten years: far beyond any real token, and far from where milliseconds stop being exact. A longer lifetime is cut. */
const MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600
/** Some servers send the largest integer for a token that never expires. With more digits, it is not a lifetime. */
const MAX_GIVEN_SECONDS = 9_999_999_999

export const lifetime = z
  .union([
    z.int(),
    z
      .string()
      .regex(/^\d{1,10}$/)
      .transform(Number),
  ])
  .pipe(z.int().min(1).max(MAX_GIVEN_SECONDS))
  .transform(seconds => Math.min(seconds, MAX_LIFETIME_SECONDS))

// RFC 6749, appendix A: the characters of a token, all of which a header can carry.
const token = z.string().regex(/^[\x21-\x7e]+$/)
const tokenTypes = z.string().regex(/^(bearer|dpop)$/i)

// Created once, because creating a schema takes longer than using it.
const tokenAnswer = z.object({
  access_token: token,
  token_type: tokenTypes.nullish(),
  refresh_token: z.union([token, z.literal('')]).nullish(),
  expires_in: lifetime.nullish(),
  id_token: z.unknown().optional(),
})

/** The first is used by Keycloak, Authing and others; the second by GitHub, Feishu and others. */
const REFRESH_LIFETIMES = ['refresh_expires_in', 'refresh_token_expires_in']

/** Keycloak sends 0 for a refresh token that never expires. A value that is not a lifetime is ignored. */
function refreshEnd(body: object, hasRefreshToken: boolean, now: number): number | undefined {
  const known = REFRESH_LIFETIMES.map(name => lifetime.safeParse(getPath(body, name))).find(({ success }) => success)
  if (known?.data !== undefined) return now + known.data * 1000
  return hasRefreshToken ? now + MAX_LIFETIME_SECONDS * 1000 : undefined
}

/** Errors that are final for a code or a refresh token; anything else may be different a moment later. */
const FINAL_ERRORS = ['invalid_grant', 'invalid_token']

/** The response with the names of RFC 6749, if the provider has others. */
function withStandardNames(body: object, names: Texts): Readonly<Record<string, unknown>> {
  return { ...body, ...Object.fromEntries(Object.entries(names).map(([name, path]) => [name, getPath(body, path)])) }
}

/** `key` signed the proof of the token request; the token is bound to it if the answer says so. */
export function readTokenSet(answer: ProviderAnswer, plan: ProviderPlan, now: number, key?: DpopKey): TokenSet {
  const body = readAccepted(answer, plan.tokenAnswer, [...FINAL_ERRORS, ...plan.refreshEnds])
  const { names, lifetimeSeconds, tokenType } = plan.tokenAnswer
  const given = withStandardNames(body, names)
  const required = [
    ...(tokenType === 'required' ? ['token_type'] : []),
    ...(lifetimeSeconds === undefined ? ['expires_in'] : []),
  ]
  const isBound = /^dpop$/i.test(String(given.token_type))
  if (isBound && key === undefined) throw wrongBinding(phrase('tokens_bound_to_key'), phrase('set_dpop'))
  const { access_token, refresh_token, expires_in, id_token } = checkFields(given, required, plan.kind === 'oidc')
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

function checkFields(given: Readonly<Record<string, unknown>>, required: readonly string[], isOidc: boolean) {
  const result = tokenAnswer.safeParse(given)
  const odd = result.error?.issues.map(issue => issue.path.join('.') || 'the whole') ?? []
  const missing = required.filter(name => given[name] === undefined || given[name] === null)
  const idToken = typeof given.id_token === 'string' ? given.id_token : undefined
  // Without OpenID Connect, an id_token that is not text is ignored.
  const oddIdToken = isOidc && idToken === undefined && (given.id_token ?? undefined) !== undefined ? ['id_token'] : []
  const unusable = new Set([...odd, ...missing, ...oddIdToken])
  if (!result.success || unusable.size > 0)
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: [...unusable] }))
  return { ...result.data, id_token: idToken }
}
