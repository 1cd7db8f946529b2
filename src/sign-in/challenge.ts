// The `WWW-Authenticate` header of a denial: what a program has to send, or to get, to be admitted.
//
//   no session                                 Cookie realm="menshen"
//   no session, with a token                   Bearer, with error="invalid_token" if the token was rejected
//   no session, where a rule has `keys`        Basic realm="menshen", for programs: they send a key as the password
//   a token without all scopes of the rule     Bearer error="insufficient_scope", scope="…"
//   a sign-in that is too old or too weak      Bearer error="insufficient_user_authentication", max_age="…"

import type { IncomingHttpHeaders } from 'node:http'
import { requestFor } from '../access/conditions.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Admission, CallerIdentification } from '../identify/admission.ts'
import { challengeParameters, metadataParameter, scopeParameters } from '../identify/protected-resources.ts'
import { hasToken, isBrowser, isGit, isWebDav, sendsPassword } from '../util/fetch-metadata.ts'

/** The `WWW-Authenticate` of a denial by status; `undefined` if none applies. */
export function challengeFor(request: GatewayRequest, admission: Admission): string | undefined {
  if (admission.outcome === 'visitor') return visitorChallenge(request, admission)
  if (admission.outcome === 'step_up') return stepUpChallenge(admission)
  return admission.outcome === 'refused' && admission.program && !admission.program.who.keyKind && !admission.condition
    ? scopeChallenge(admission)
    : undefined
}

const PASSWORD_CHALLENGE = 'Basic realm="menshen"'

/** RFC 9110 requires a challenge with every 401. No scheme for cookies is registered; `Cookie` does not make browsers ask for a password. */
export function visitorChallenge(
  { method, headers }: GatewayRequest,
  { failedToken, resource, acceptsKey }: CallerIdentification,
): string {
  const parameters = [...(failedToken ? ['error="invalid_token"'] : []), ...challengeParameters(resource)]
  const forToken = parameters.length > 0 ? `Bearer ${parameters.join(', ')}` : undefined
  // Git and WebDAV clients send a key as a password once they are asked for one. A browser would ask its user. WebDAV clients
  // call themselves Mozilla, too; a script of a page, which can use these methods as well, sends Sec-Fetch-Mode.
  const sentPassword = sendsPassword(headers)
  const mayTakePassword = headers['sec-fetch-mode'] === undefined && (isWebDav(method) || sentPassword)
  const takesPassword = !isBrowser(headers) || mayTakePassword
  const forKey = acceptsKey && !hasToken(headers) && takesPassword ? PASSWORD_CHALLENGE : undefined
  // A client that sent a wrong password asks for another one only if Basic is among the challenges.
  if (forToken && forKey && (!failedToken || sentPassword)) return bothChallenges(headers, forToken, forKey)
  return forToken ?? forKey ?? (hasToken(headers) ? 'Bearer' : 'Cookie realm="menshen"')
}

/** Both in one line, as in a Response. JGit and MCP clients read only the first scheme. */
function bothChallenges(headers: IncomingHttpHeaders, forToken: string, forKey: string): string {
  return isGit(headers) ? `${forKey}, ${forToken}` : `${forToken}, ${forKey}`
}

/** RFC 6750, 3: the token is valid, but not sufficient. Names all scopes that the path needs if the token lacks one of them. */
export function scopeChallenge({ missingScopes, resource }: Admission): string {
  const scopes = missingScopes ? scopeParameters(missingScopes) : []
  // If no other scope would help, the client has no reason to get another token.
  const metadata = missingScopes && resource ? [metadataParameter(resource)] : []
  return ['Bearer error="insufficient_scope"', ...scopes, ...metadata].join(', ')
}

/** RFC 9470, 3. The values have no quotes: the configuration was checked. */
export function stepUpChallenge({ demands = [], resource }: Admission): string {
  const { maxAge, acr } = requestFor(demands)
  return [
    'Bearer error="insufficient_user_authentication"',
    ...(acr.length > 0 ? [`acr_values="${acr.join(' ')}"`] : []),
    ...(maxAge === undefined ? [] : [`max_age="${maxAge}"`]),
    ...challengeParameters(resource),
  ].join(', ')
}
