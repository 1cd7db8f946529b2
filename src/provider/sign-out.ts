// How the provider learns of a sign-out: by a call of ours, by the browser that passes through it, or not at all; and the
// revocation of tokens where it takes one.
import { MenshenError } from '../errors.ts'
import { OWN_PATHS } from '../paths.ts'
import { quoted } from '../phrases.ts'
import { getPath, notAccepted } from '../util/json-path.ts'
import type { Metadata } from './discovery.ts'
import { type BoundedFetch, readAnswer, type WholeAnswer } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'
import type { ProviderConnection } from './provider-connection.ts'
import { askAsClient, errorCodeIn, RefusalError } from './token.ts'

/** Proxies refuse an answer whose headers do not fit into their buffer, often 4 KiB. Without a hint the provider may ask. */
const LONGEST_HINT = 3000

/** What a session still has of the provider's. */
export interface SessionTokens {
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
}

type SignOutCall = () => Promise<void>

/** What is to be called from server to server; nothing, at most providers. */
export async function signOutCalls(
  connection: ProviderConnection,
  held: SessionTokens,
  fetch: BoundedFetch,
): Promise<SignOutCall[]> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const { logout, revocation } = known.endpoints
  const calls: SignOutCall[] = []
  if (logout && plan.logout.style === 'server') calls.push(() => tell(logout, plan, held, fetch))
  // At a company's provider there is no token of the user's.
  if (revocation && plan.revoke === 'always' && held.accessToken)
    calls.push(() => revoke(connection, known, revocation, held, fetch))
  return calls
}

/** All of them, whichever fails. Throws if one did. */
export async function makeSignOutCalls(calls: readonly SignOutCall[]): Promise<void> {
  const results = await Promise.allSettled(calls.map(call => call()))
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

/** A status alone says little: some answer 200 and say in the body that they refuse. */
async function assertDone(
  what: string,
  { success }: ProviderPlan['tokenAnswer'],
  response: WholeAnswer,
): Promise<void> {
  const { status, body } = await readAnswer(response)
  const isEnvelope = Object.keys(success).some(place => getPath(body, place) !== undefined)
  const isRefused = isEnvelope ? notAccepted(body, success) !== undefined : Boolean(getPath(body, 'error'))
  if (status < 400 && !isRefused) return
  const said = errorCodeIn(body)
  throw new RefusalError(
    'provider_answer',
    quoted(`${what} was answered with ${status}${said === undefined ? '' : ` and ${said}`}`),
    status,
    said,
  )
}

/** The access token goes to the user info address only, and the client secret to the token address only. */
async function tell(
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
  const request = askAsClient({ ...connection, fetch }, known, url, { token: revoked }, { ...shape, headers })
  await assertDone('the revocation', tokenAnswer, await request)
}

/** Where the browser goes to sign out at the provider, and from there to /login; `undefined` if it need not. */
export async function signOutUrl(
  { plan, metadata }: ProviderConnection,
  baseUrl: string,
  { idToken }: SessionTokens,
  state: string,
): Promise<string | undefined> {
  const { logout } = (await metadata.get()).endpoints
  const { style = logout ? 'browser' : 'none', returnParam, params, idTokenHint } = plan.logout
  if (style !== 'browser') return undefined
  if (!logout)
    throw new MenshenError('bad_settings', 'logout.style is "browser", but the provider has no logout address')
  const url = new URL(logout)
  url.searchParams.set(returnParam, baseUrl + OWN_PATHS.login)
  if (plan.kind === 'oidc') {
    url.searchParams.set('client_id', plan.clientId)
    url.searchParams.set('state', state)
  }
  if (idTokenHint && idToken && idToken.length <= LONGEST_HINT) url.searchParams.set('id_token_hint', idToken)
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}
