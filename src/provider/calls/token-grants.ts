// The two grants: a code for tokens, and a refresh token for new ones. With OpenID Connect the id_token is checked before
// anything else is done with them.
import { setTimeout as pause } from 'node:timers/promises'
import { decodeJwt, type JWTPayload } from 'jose'
import { factsOf, MenshenError } from '../../errors.ts'
import { phrase, phrasedError, phraseOf, quoted } from '../../phrases.ts'
import { causeOf } from '../demands.ts'
import { checkIdToken, verifySigned } from '../oidc/id-token.ts'
import { endpointOf, type Metadata } from '../oidc/metadata.ts'
import { providerSessionIn } from '../oidc/provider-session.ts'
import type { ProviderPlan } from '../plan.ts'
import { RefusalError, readTokenSet, type TokenSet } from '../token-answer.ts'
import { type Answer, type BoundedFetch, NeverArrived, readAnswer } from './bounded-fetch.ts'
import type { ProviderConnection } from './provider-connection.ts'
import { askAsClient, askForTokens } from './token-request.ts'
import type { WholeAnswer } from './whole-answer.ts'

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
): Promise<TokenSet> {
  const { plan, redirectUri } = connection
  const known = await connection.metadata.get()
  const grant = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    ...(verifier !== undefined && { code_verifier: verifier }),
  }
  const response = await askForTokens(connection, known, endpointOf(known, 'token'), grant, state)
  const tokens = readTokens(await readAnswer(response), connection, known)
  if (plan.kind !== 'oidc') return withProviderSession(connection, known, tokens)
  if (!tokens.idToken) throw phrasedError('provider_answer', phrase('answer_unusable', { fields: 'id_token' }))
  const { idToken, accessToken } = tokens
  const isNonce = (given: unknown) => given === nonce
  const signedInSince = oldestSignIn(plan, startedAt)
  const claims = await checkIdToken(connection, known, idToken, { isNonce, accessToken, signedInSince })
  const providerSession = providerSessionIn(claims)
  return { ...tokens, claims, ...(providerSession ? { providerSession } : {}) }
}

/** A refusal names its cause, where the metadata or the answer points to one. */
function readTokens(answer: Answer, { plan, now }: ProviderConnection, known: Metadata): TokenSet {
  try {
    return readTokenSet(answer, plan, now())
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
    connection.report('id_token_unusable', { provider: connection.plan.id, ...factsOf(error) })
    return tokens
  }
}

/** `idToken` is the one of the sign-in: a refreshed one has to be about the same user. */
export async function refreshTokens(
  connection: ProviderConnection,
  { refreshToken, idToken }: { readonly refreshToken: string; readonly idToken?: string | undefined },
): Promise<TokenSet> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const url = known.endpoints.refresh ?? endpointOf(known, 'token')
  const grant = { grant_type: 'refresh_token', refresh_token: refreshToken, ...refreshParams(connection) }
  const request = () => askForTokens(connection, known, url, grant)
  const response = await retryUnarrived(request, connection.timeoutMs)
  const tokens = readTokens(await readAnswer(response), connection, known)
  if (plan.kind === 'oidc' && tokens.idToken) await checkRefreshed(connection, known, tokens.idToken, tokens, idToken)
  return tokens
}

/** `$redirect_uri` is ours: some want it at the refresh too. */
function refreshParams({ plan, redirectUri }: ProviderConnection): Record<string, string> {
  const entries = Object.entries(plan.refreshParams)
  return Object.fromEntries(entries.map(([name, text]) => [name, text === '$redirect_uri' ? redirectUri : text]))
}

/** It keeps the issuer and the user, and the nonce if it has one (OpenID Connect Core 12.2). */
async function checkRefreshed(
  connection: ProviderConnection,
  known: Metadata,
  idToken: string,
  { accessToken }: TokenSet,
  before: string | undefined,
): Promise<void> {
  const old: JWTPayload = before === undefined ? {} : decodeJwt(before)
  const isNonce = (given: unknown) => given === undefined || old.nonce === undefined || given === old.nonce
  const isAnother = ({ sub, iss }: JWTPayload) => before !== undefined && (sub !== old.sub || iss !== old.iss)
  try {
    if (!isAnother(await checkIdToken(connection, known, idToken, { isNonce, accessToken }))) return
  } catch (error) {
    // One that is not even valid proves nothing, but what it says decides whether the session can live on.
    if (!isAnother(claimsOf(idToken) ?? old)) throw error
  }
  throw new MenshenError('provider_refused', 'the refreshed id_token is of another user or issuer')
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
async function retryUnarrived(request: () => Promise<WholeAnswer>, timeoutMs: number): Promise<WholeAnswer> {
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
  if (status !== 200) throw new MenshenError('provider_answer', `introspection answered ${status}`)
  return body
}
