// The URL at which the browser signs in, with the parameters and names of the plan.
import type { ProviderPlan, Texts } from './plan.ts'

export interface AuthorizationRequest {
  readonly state: string
  readonly challenge?: string
  readonly nonce?: string
  /** Additional parameters for this attempt only. They replace those of the plan. */
  readonly params?: Texts
  /** The browser is inside the provider's own app. */
  readonly inApp?: true
}

/** Without an attempt, the URL has only the parameters that all attempts have in common. */
export function buildAuthorizationUrl(
  endpoint: string,
  { authorization, clientId }: Pick<ProviderPlan, 'authorization' | 'clientId'>,
  redirectUri: string,
  attempt?: AuthorizationRequest,
): string {
  const url = new URL(endpoint)
  const params: [name: string, value: string | undefined][] = [
    ['response_type', 'code'],
    ['scope', authorization.scope || undefined],
    ['client_id', clientId],
    ['redirect_uri', redirectUri],
    ['state', attempt?.state],
    ['nonce', attempt?.nonce],
    ['code_challenge', attempt?.challenge],
    ['code_challenge_method', attempt?.challenge && 'S256'],
    ...Object.entries(authorization.params),
    ...Object.entries(attempt?.params ?? {}),
  ]
  for (const [name, value] of params) {
    // A parameter that is renamed to an empty name is left out.
    const named = authorization.names[name] ?? name
    if (named && value !== undefined) url.searchParams.set(named, value)
  }
  return url.href + authorization.fragment
}
