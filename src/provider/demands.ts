// Demands of a provider that Menshen or its settings do not meet: read from the metadata in advance, and named as the cause when a
// sign-in fails.
import { type Phrase, phrase, phraseIn } from '../text/text.ts'
import { sanitize } from '../util/safe-text.ts'
import { algorithmFor, readClientKey } from './client-key.ts'
import type { Metadata, ProviderDocument } from './discovery.ts'
import { PROOF_ALGORITHM } from './dpop.ts'
import { ALGORITHMS } from './id-token.ts'
import { usesMutualTls } from './mutual-tls.ts'
import type { ProviderPlan } from './plan.ts'

export interface Demand {
  readonly what: Phrase
  readonly remedy: Phrase
  /** Certain: no sign-in works. Otherwise the metadata may be incomplete. */
  readonly isCertain: boolean
}

const certain = (what: Phrase, remedy: Phrase): Demand => ({ what, remedy, isCertain: true })
const likely = (what: Phrase, remedy: Phrase): Demand => ({ what, remedy, isCertain: false })

const DPOP = certain(phrase('demands_dpop'), phrase('set_dpop'))
const PROOF = likely(phrase('proof_refused'), phrase('check_proof'))
const PUSHED = certain(phrase('demands_pushed_requests'), phrase('set_par'))
const PUSH_REFUSED = likely(phrase('push_refused'), phrase('check_push'))
const NO_PUSH_ENDPOINT = certain(phrase('no_push_endpoint'), phrase('set_push_endpoint'))
const CERTIFICATE = likely(phrase('certificate_refused'), phrase('register_certificate'))
const SIGNED = certain(phrase('demands_signed_requests'), phrase('turn_off_for_client'))
const FORM_POST = certain(phrase('answers_by_form'), phrase('set_query_mode'))
const CHALLENGE = likely(phrase('may_demand_pkce'), phrase('set_pkce'))

/** The unmet demands in the metadata; none without a discovery document. */
export function demandsOf(plan: ProviderPlan, metadata: Metadata): Demand[] {
  const { document } = metadata
  if (!document) return []
  return [
    ...demandsOfPush(plan, metadata),
    ...demandsOfRequest(plan, document),
    ...demandsOfTokens(document),
    ...demandsOfProof(plan, document),
    // Many providers leave `none` out of the list: only the token endpoint shows whether it accepts a client without a secret.
    ...(plan.clientAuth === 'none' ? [] : demandsOfClient(plan, metadata)),
    ...demandsOfRevocation(plan, metadata),
  ]
}

function demandsOfRevocation({ revoke }: ProviderPlan, { endpoints }: Metadata): Demand[] {
  if (revoke !== 'always' || endpoints.revocation !== undefined) return []
  return [likely(phrase('advice.revoke_without_address'), phrase('advise_revocation_url'))]
}

function demandsOfPush({ par }: ProviderPlan, { document, endpoints }: Metadata): Demand[] {
  if (par !== 'on' && !document?.demandsPushedRequests) return []
  if (par === 'off') return [PUSHED]
  return endpoints.par === undefined ? [NO_PUSH_ENDPOINT] : []
}

function demandsOfProof({ dpop }: ProviderPlan, { proofAlgorithms }: ProviderDocument): Demand[] {
  if (dpop !== 'on' || !proofAlgorithms || proofAlgorithms.includes(PROOF_ALGORITHM)) return []
  return [certain(phrase('proofs_only_by', { algorithms: listOf(proofAlgorithms) }), phrase('allow_es256_proofs'))]
}

function demandsOfRequest({ pkce, authorization }: ProviderPlan, document: ProviderDocument): Demand[] {
  const { responseTypes, responseModes, challengeMethods, scopes } = document
  const asked = authorization.scope.split(' ')
  const unlisted = asked.filter(scope => scope && !scopes?.includes(scope))
  return [
    ...(asked.includes('openid') ? [] : [withoutOpenid(authorization.scope)]),
    ...(document.demandsSignedRequests ? [SIGNED] : []),
    ...(responseTypes && !responseTypes.includes('code')
      ? [certain(phrase('offers_no_code'), phrase('allow_code_grant_there'))]
      : []),
    ...(responseModes && responseModes.length > 0 && !responseModes.includes('query') ? [FORM_POST] : []),
    ...(challengeMethods?.includes('S256') && !pkce ? [likely(phrase('offers_pkce'), phrase('set_pkce'))] : []),
    ...(challengeMethods && !challengeMethods.includes('S256') && pkce
      ? [likely(phrase('lists_no_pkce'), phrase('set_pkce_off'))]
      : []),
    ...(scopes && unlisted.length > 0
      ? [likely(phrase('scope_not_listed', { scope: unlisted }), phrase('check_scope_or_allow'))]
      : []),
  ]
}

function withoutOpenid(scope: string): Demand {
  return certain(phrase('scope_without_openid', { scope }), phrase('add_openid', { scope }))
}

function demandsOfTokens({ signingAlgorithms }: ProviderDocument): Demand[] {
  if (!signingAlgorithms || signingAlgorithms.some(name => ALGORITHMS.includes(name))) return []
  return [certain(phrase('signs_only_by', { algorithms: listOf(signingAlgorithms) }), phrase('set_signing_algorithm'))]
}

/** The metadata's names for our client authentication methods. */
const METHODS = {
  basic: 'client_secret_basic',
  post: 'client_secret_post',
  private_key_jwt: 'private_key_jwt',
  tls_client_auth: 'tls_client_auth',
  self_signed_tls_client_auth: 'self_signed_tls_client_auth',
  none: 'none',
} as const

function demandsOfClient(plan: ProviderPlan, { clientAuths, assertionAlgorithms }: Metadata): Demand[] {
  if (!clientAuths || clientAuths.length === 0) return []
  const { clientAuth, clientKey, assertion } = plan
  const ours = Object.entries(METHODS).filter(([, name]) => clientAuths.includes(name))
  const methods = listOf(clientAuths)
  if (ours.length === 0) return [certain(phrase('client_only_by', { methods }), phrase('allow_client_auth'))]
  const isFitting = clientAuth
    ? clientAuths.includes(METHODS[clientAuth])
    : ours.some(([way]) => /^(basic|post)$/.test(way))
  if (!isFitting) {
    const ways = ours.map(([way]) => way).join(', ')
    const what = phrase('client_only_by_not', { methods, method: METHODS[clientAuth ?? 'basic'] })
    return [likely(what, phrase('set_client_auth', { ways }))]
  }
  if (clientAuth !== 'private_key_jwt' || !clientKey || !assertionAlgorithms) return []
  const algorithm = algorithmFor(readClientKey(clientKey.reveal()), assertion.algorithm, assertionAlgorithms)
  if (assertionAlgorithms.includes(algorithm)) return []
  const what = phrase('assertion_only_by', { algorithms: listOf(assertionAlgorithms), algorithm })
  return [likely(what, phrase('use_fitting_key'))]
}

function listOf(names: readonly string[]): string {
  return sanitize(names.slice(0, 10).join(', '), 200)
}

/** A refusal of the provider: its code, and its description, which is searched for a cause and never shown. */
export interface Refusal {
  readonly error: string
  readonly description?: string | undefined
}

/** The cause of a refusal; `undefined` if nothing points to one. */
export function causeOf(plan: ProviderPlan, metadata: Metadata | undefined, refusal: Refusal): Demand | undefined {
  const { error, description = '' } = refusal
  const demands = metadata ? demandsOf(plan, metadata) : []
  if (/dpop/i.test(error) || /\bdpop\b/i.test(description)) return isProven(plan, error) ? PROOF : DPOP
  if (/request_uri|pushed[ _]authorization|\bPAR\b/.test(description))
    return plan.par === 'on' || (plan.par === 'auto' && metadata?.document?.demandsPushedRequests)
      ? PUSH_REFUSED
      : PUSHED
  if (error === 'invalid_client' || error === 'unauthorized_client')
    return (metadata && demandsOfClient(plan, metadata)[0]) ?? (usesMutualTls(plan) ? CERTIFICATE : undefined)
  const found = demands.find(({ isCertain }) => isCertain)
  if (found) return found
  const isAboutChallenge = /code_challenge|code_verifier|pkce/i.test(description)
  return !plan.pkce && (isAboutChallenge || error === 'invalid_request') ? CHALLENGE : undefined
}

/** With `auto`, an error code about DPoP is answered with a proof; no other error starts it. */
function isProven({ dpop }: ProviderPlan, error: string): boolean {
  return dpop === 'on' || (dpop === 'auto' && /dpop/i.test(error))
}

export const FORM_POST_MESSAGE = demandMessage(FORM_POST)

/** For the log: the demand and what to do about it. */
export function demandMessage({ what, remedy }: Demand): string {
  return `${phraseIn('en', what)}. ${phraseIn('en', remedy)}`
}
