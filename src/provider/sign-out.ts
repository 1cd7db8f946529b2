// Notifies the provider of a sign-out: by a direct call, by a redirect of the browser, or not at all. Revokes tokens where the
// provider supports it.
import { MenshenError } from '../errors.ts'
import { quoted } from '../text/text.ts'
import { getPath, notAccepted } from '../util/json-path.ts'
import { requestAsClient } from './client-auth.ts'
import type { ProviderConnection } from './connection.ts'
import type { Metadata } from './discovery.ts'
import type { DpopKey } from './dpop.ts'
import { type BoundedFetch, readAnswer, type WholeAnswer } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'
import { errorCodeIn, RefusalError } from './refusal.ts'

/** Proxies refuse answers whose headers exceed their buffer, often 4 KiB. Without a hint the provider may ask the user. */
const MAX_ID_TOKEN_HINT_LENGTH = 3000

/** The provider's tokens in a session. */
export interface SessionTokens {
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
  readonly dpopKey?: DpopKey | undefined
}

type SignOutCall = () => Promise<void>

/** The direct calls; none for most providers. */
export async function signOutCalls(
  connection: ProviderConnection,
  tokens: SessionTokens,
  fetch: BoundedFetch,
): Promise<SignOutCall[]> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const { logout, revocation } = known.endpoints
  const calls: SignOutCall[] = []
  if (logout && plan.logout.style === 'server') calls.push(() => callLogout(logout, plan, tokens, fetch))
  // In the flow with a company token, users have no tokens.
  if (revocation && plan.revoke === 'always' && tokens.accessToken)
    calls.push(() => revoke(connection, known, revocation, tokens, fetch))
  return calls
}

/** For tokens whose session continues, or never began: the user stays signed in at the provider. */
export async function revocationCalls(
  connection: ProviderConnection,
  unused: readonly SessionTokens[],
  fetch: BoundedFetch,
): Promise<SignOutCall[]> {
  if (connection.plan.revoke !== 'always') return []
  const known = await connection.metadata.get()
  const { revocation } = known.endpoints
  if (!revocation) return []
  return unused
    .filter(({ accessToken }) => accessToken)
    .map(tokens => () => revoke(connection, known, revocation, tokens, fetch))
}

/** Makes all calls, and then throws if one has failed. */
export async function makeSignOutCalls(calls: readonly SignOutCall[]): Promise<void> {
  const results = await Promise.allSettled(calls.map(call => call()))
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

/** The status is not enough: some providers answer 200 and refuse in the body. */
async function assertDone(
  what: string,
  { success }: ProviderPlan['tokenAnswer'],
  response: WholeAnswer,
): Promise<void> {
  const { status, body } = await readAnswer(response)
  const isEnvelope = Object.keys(success).some(path => getPath(body, path) !== undefined)
  const isRefused = isEnvelope ? notAccepted(body, success) !== undefined : Boolean(getPath(body, 'error'))
  if (status < 400 && !isRefused) return
  const error = errorCodeIn(body)
  const seen = quoted(`${what} was answered with ${status}${error === undefined ? '' : ` and ${error}`}`)
  throw new RefusalError('provider_answer', seen, status, error)
}

/** Sends neither the access token nor the client secret: those go to their own endpoints only. */
async function callLogout(
  url: string,
  { clientId, tokenAnswer }: ProviderPlan,
  { refreshToken }: SessionTokens,
  fetch: BoundedFetch,
): Promise<void> {
  const body = new URLSearchParams({ client_id: clientId, ...(refreshToken ? { refresh_token: refreshToken } : {}) })
  await assertDone('the sign-out', tokenAnswer, await fetch(url, { method: 'POST', body }))
}

async function revoke(
  connection: ProviderConnection,
  known: Metadata,
  url: string,
  { refreshToken, accessToken }: SessionTokens,
  fetch: BoundedFetch,
): Promise<void> {
  const { revocationRequest, tokenRequest, tokenAnswer } = connection.plan
  const { token, ...shape } = revocationRequest
  const revoked = token === 'access_token' ? accessToken : (refreshToken ?? accessToken)
  const { headers } = tokenRequest
  const request = requestAsClient({ ...connection, fetch }, known, url, { token: revoked }, { ...shape, headers })
  await assertDone('the revocation', tokenAnswer, await request)
}

/** The URL at which the browser signs out, which leads back to the login page; `undefined` if there is none. */
export async function signOutUrl(
  { plan, metadata }: ProviderConnection,
  loginUrl: string,
  { idToken }: SessionTokens,
  state: string,
): Promise<string | undefined> {
  const { logout } = (await metadata.get()).endpoints
  const { style = logout ? 'browser' : 'none', returnParam, params, idTokenHint } = plan.logout
  if (style !== 'browser') return undefined
  if (!logout)
    throw new MenshenError('bad_settings', 'logout.style is "browser", but the provider has no logout address')
  const url = new URL(logout)
  url.searchParams.set(returnParam, loginUrl)
  if (plan.kind === 'oidc') {
    url.searchParams.set('client_id', plan.clientId)
    url.searchParams.set('state', state)
  }
  if (idTokenHint && idToken && idToken.length <= MAX_ID_TOKEN_HINT_LENGTH)
    url.searchParams.set('id_token_hint', idToken)
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}
