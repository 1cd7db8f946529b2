// How the provider learns of a sign-out: by a call of ours, by the browser that passes through it, or not at all; and the
// revocation of tokens where it takes one.
import { OWN_PATHS } from '../../own-paths.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import type { ProviderConnection } from './provider-connection.ts'
import { askAsClient } from './token-request.ts'

/** Proxies refuse an answer whose headers do not fit into their buffer, often 4 KiB. Without a hint the provider may ask. */
const LONGEST_HINT = 3000

/** What a session still has of the provider's. */
export interface HeldTokens {
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
}

/** From server to server. */
export async function tellOfSignOut(
  connection: ProviderConnection,
  held: HeldTokens,
  fetch: BoundedFetch,
): Promise<void> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const { logout, revocation } = known.endpoints
  await Promise.all([
    logout && plan.logout.style === 'server' ? tell(logout, plan.clientId, held, fetch) : undefined,
    revocation ? revoke(connection, known, revocation, held, fetch) : undefined,
  ])
}

/** The access token goes to the user info address only, and the client secret to the token address only. */
async function tell(url: string, clientId: string, { refreshToken }: HeldTokens, fetch: BoundedFetch): Promise<void> {
  const body = new URLSearchParams({ client_id: clientId, ...(refreshToken ? { refresh_token: refreshToken } : {}) })
  await fetch(url, { method: 'POST', body })
}

async function revoke(
  connection: ProviderConnection,
  known: Metadata,
  url: string,
  { refreshToken, accessToken }: HeldTokens,
  fetch: BoundedFetch,
): Promise<void> {
  const { revocationRequest, tokenRequest } = connection.plan
  const { token, ...shape } = revocationRequest
  const revoked = token === 'access_token' ? accessToken : (refreshToken ?? accessToken)
  const { headers } = tokenRequest
  await askAsClient({ ...connection, fetch }, known, url, { token: revoked }, { ...shape, headers })
}

/** Where the browser goes to sign out at the provider, and from there to /login; `undefined` if it need not. */
export async function signOutUrl(
  { plan, metadata }: ProviderConnection,
  baseUrl: string,
  { idToken }: HeldTokens,
  state: string,
): Promise<string | undefined> {
  const { logout } = (await metadata.get()).endpoints
  const { style = logout ? 'browser' : 'none', returnParam, params, idTokenHint } = plan.logout
  if (style !== 'browser' || !logout) return undefined
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
