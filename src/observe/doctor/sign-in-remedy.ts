// What to do about a test sign-in that came to nothing: one remedy for each way in which it can fail.
import type { MenshenError } from '../../errors.ts'
import type { Demand } from '../../provider/demands.ts'
import { InvalidToken } from '../../provider/oidc/id-token.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import { RefusalError } from '../../provider/token-answer.ts'

const FIELDS = 'docs/providers.md says how fields are found; name the right ones in `fields` of the configuration.'
const CLIENT = 'Check CLIENT_ID and CLIENT_SECRET, and that CLIENT_AUTH is the way that is registered for this client.'

/** By the error that ended it. */
export function remedyForFailure(error: MenshenError, plan: Pick<ProviderPlan, 'pkce'>, redirectUri: string): string {
  if (error instanceof RefusalError) return remedyForRefusal(error, plan, redirectUri)
  if (error instanceof InvalidToken) return remedyForToken(error.claim)
  if (error.code === 'provider_unreachable')
    return 'Check what stands between here and the provider; a slow one needs a larger PROVIDER_TIMEOUT_MS.'
  if (error.code === 'bad_settings') return 'Run menshen doctor: it names what is missing.'
  return FIELDS
}

function remedyForRefusal(
  { status, said, remedy }: RefusalError,
  { pkce }: Pick<ProviderPlan, 'pkce'>,
  redirectUri: string,
) {
  if (remedy) return remedy
  if (said === 'invalid_grant')
    return `The provider refuses the code that it has just given: check that ${redirectUri} is registered exactly like this${pkce ? '' : ', and whether it demands PKCE (PKCE=S256)'}.`
  if (status === 401 || said === 'invalid_client' || said === 'unauthorized_client') return CLIENT
  if (status >= 500) return 'Ask whoever runs the provider: its log says more.'
  return 'Look at the log of the provider, and run menshen doctor.'
}

const CLOCK = 'Set the time of this machine by NTP; if it is right, the provider has to set its own.'
const BY_CLAIM: Readonly<Record<string, string>> = {
  exp: CLOCK,
  iat: CLOCK,
  nbf: CLOCK,
  iss: 'AUTH_URL (or issuer) has to be what the provider calls itself; other names of its own go into alsoIssuers.',
  aud: 'CLIENT_ID has to be the client that the id_token is for.',
  azp: 'CLIENT_ID has to be the client that the id_token is for.',
  alg: 'Set RS256 or ES256 as the signature of id_tokens for this client at the provider.',
  form: 'Turn the encryption of id_tokens off for this client at the provider.',
  key: 'Check that the keys at the address of the metadata (or JWKS_URL) are those of this provider.',
  signature: 'Check that the keys at the address of the metadata (or JWKS_URL) are those of this provider.',
  nonce:
    'Begin again in one browser; if it stays, the provider does not return the nonce, which OpenID Connect demands.',
  auth_time: 'The provider has to ask users to sign in again when max_age says so.',
}

function remedyForToken(claim: string): string {
  return BY_CLAIM[claim] ?? 'Ask whoever runs the provider: its id_token is not as OpenID Connect says.'
}

const BY_ERROR: Readonly<Record<string, string>> = {
  access_denied: 'The provider let this user not pass: check who is allowed to use this client, or try another user.',
  invalid_scope: 'Check SCOPE: the provider does not know one of the scopes, or does not allow it for this client.',
  unauthorized_client: 'Allow the authorization code grant for this client at the provider.',
  unsupported_response_type: 'Allow the response type "code" for this client at the provider.',
  invalid_request: 'Check SCOPE and authorizationParams, and whether the provider demands PKCE (PKCE=S256).',
}

/** By the error that the provider sent to the callback. */
export function remedyForError(error: string, cause: Demand | undefined): string {
  const known = Object.hasOwn(BY_ERROR, error) ? BY_ERROR[error] : undefined
  return cause?.remedy ?? known ?? 'Ask whoever runs the provider: its log says more.'
}

/** Of a user who came through, but not with names that we can use. */
export const UNUSABLE_USER = FIELDS

/** Without a refresh token a session is as short as its access token. */
export function refreshNote({ kind, authorization }: ProviderPlan, expiresIn: number) {
  const minutes = Math.max(1, Math.round(expiresIn / 60))
  const seen = `no refresh token: sessions end with the access token after ${minutes} minute${minutes === 1 ? '' : 's'}`
  const hasScope = authorization.scope.split(' ').includes('offline_access')
  if (kind !== 'oidc') return { seen, remedy: 'Have the provider give refresh tokens to this client.' }
  if (!hasScope) return { seen, remedy: `Add offline_access: SCOPE="${authorization.scope} offline_access".` }
  const remedy =
    'offline_access is asked for already: allow refresh tokens for this client at the provider; some want prompt=consent in authorizationParams.'
  return { seen, remedy }
}
