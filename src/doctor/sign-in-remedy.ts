// What to do about a failed test sign-in: one remedy for each way in which it can fail.
import type { MenshenError } from '../errors.ts'
import type { Demand } from '../provider/demands.ts'
import { InvalidToken } from '../provider/id-token.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import { RefusalError } from '../provider/refusal.ts'
import { type Phrase, phrase } from '../text/text.ts'

/** The remedy for the error that ended the sign-in. */
export function remedyForFailure(error: MenshenError, plan: Pick<ProviderPlan, 'pkce'>, redirectUri: string): Phrase {
  if (error instanceof RefusalError) return remedyForRefusal(error, plan, redirectUri)
  if (error instanceof InvalidToken) return remedyForToken(error.claim)
  if (error.code === 'provider_unreachable') return phrase('check_network_to_provider')
  if (error.code === 'bad_settings') return phrase('run_doctor')
  return UNUSABLE_USER
}

function remedyForRefusal(
  { status, errorCode, remedy }: RefusalError,
  { pkce }: Pick<ProviderPlan, 'pkce'>,
  redirectUri: string,
): Phrase {
  if (remedy) return remedy
  if (errorCode === 'invalid_grant')
    return phrase(pkce ? 'own_code_refused' : 'own_code_refused_without_pkce', { url: redirectUri })
  if (status === 401 || errorCode === 'invalid_client' || errorCode === 'unauthorized_client')
    return phrase('check_client_and_auth')
  if (status >= 500) return phrase('ask_admin_for_log')
  return phrase('look_at_provider_log')
}

const BY_CLAIM: Readonly<Record<string, Phrase>> = {
  exp: phrase('set_clocks'),
  iat: phrase('set_clocks'),
  nbf: phrase('set_clocks'),
  iss: phrase('token_issuer_remedy'),
  aud: phrase('token_audience_remedy'),
  azp: phrase('token_audience_remedy'),
  alg: phrase('token_algorithm_remedy'),
  form: phrase('token_encryption_remedy'),
  key: phrase('token_keys_remedy'),
  signature: phrase('token_keys_remedy'),
  nonce: phrase('token_nonce_remedy'),
  auth_time: phrase('token_auth_time_remedy'),
}

function remedyForToken(claim: string): Phrase {
  return BY_CLAIM[claim] ?? phrase('token_odd_remedy')
}

const BY_ERROR: Readonly<Record<string, Phrase>> = {
  access_denied: phrase('user_not_allowed_remedy'),
  invalid_scope: phrase('invalid_scope_remedy'),
  unauthorized_client: phrase('allow_code_grant'),
  unsupported_response_type: phrase('allow_code_response'),
  invalid_request: phrase('invalid_request_remedy'),
}

/** The remedy for an error that the provider sent to the callback. */
export function remedyForError(error: string, cause: Demand | undefined): Phrase {
  const known = Object.hasOwn(BY_ERROR, error) ? BY_ERROR[error] : undefined
  return cause?.remedy ?? known ?? phrase('ask_admin_for_log')
}

/** The remedy for a sign-in that succeeded at the provider, but without usable names. */
export const UNUSABLE_USER = phrase('name_right_fields')

/** Without a refresh token a session lasts only as long as its access token. */
export function refreshNote({ kind, authorization }: ProviderPlan, expiresIn: number) {
  const minutes = Math.max(1, Math.round(expiresIn / 60))
  const seen = phrase('no_refresh_token', { count: minutes })
  const { scope } = authorization
  if (kind !== 'oidc') return { seen, remedy: phrase('have_refresh_tokens') }
  if (!scope.split(' ').includes('offline_access')) return { seen, remedy: phrase('add_offline_access', { scope }) }
  return { seen, remedy: phrase('allow_refresh_tokens') }
}
