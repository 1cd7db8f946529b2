// What a provider demands that Menshen, or these settings, do not do: read from its metadata before anybody signs in, and
// named as the cause when a sign-in fails.
import { printable } from '../settings/json-place.ts'
import { algorithmFor, readClientKey } from './calls/client-key.ts'
import { ALGORITHMS } from './oidc/id-token.ts'
import type { Metadata, ProviderDocument } from './oidc/metadata.ts'
import type { ProviderPlan } from './plan.ts'

export interface Demand {
  readonly what: string
  readonly remedy: string
  /** Without it nobody can sign in; otherwise the metadata may only be incomplete. */
  readonly isCertain: boolean
}

const certain = (what: string, remedy: string): Demand => ({ what, remedy, isCertain: true })
const likely = (what: string, remedy: string): Demand => ({ what, remedy, isCertain: false })

const TURN_OFF = 'Turn that off for this client at the provider.'
const NO_SECRET_JWT = 'Menshen proves itself by client_secret_basic, client_secret_post or private_key_jwt'

const DPOP = certain('the provider demands DPoP, which Menshen does not do', TURN_OFF)
const PUSHED = certain('the provider demands pushed authorization requests (PAR), which Menshen does not do', TURN_OFF)
const SIGNED = certain('the provider demands signed authorization requests (JAR), which Menshen does not do', TURN_OFF)
const FORM_POST = certain(
  'the provider sends its answer as a form (response_mode=form_post), which Menshen does not take',
  'Set the response mode "query" for this client at the provider.',
)
const CHALLENGE = likely('the provider may demand PKCE, which is off', 'Set PKCE=S256 (pkce: true).')

/** By what the metadata says. Without metadata nothing is known. */
export function demandsOf(plan: ProviderPlan, metadata: Metadata): Demand[] {
  const { document } = metadata
  if (!document) return []
  return [...demandsOfRequest(plan, document), ...demandsOfTokens(document), ...demandsOfClient(plan, metadata)]
}

function demandsOfRequest({ pkce, authorization }: ProviderPlan, document: ProviderDocument): Demand[] {
  const { responseTypes, responseModes, challengeMethods, scopes } = document
  const unlisted = authorization.scope.split(' ').filter(scope => scope && !scopes?.includes(scope))
  return [
    ...(document.demandsPushedRequests ? [PUSHED] : []),
    ...(document.demandsSignedRequests ? [SIGNED] : []),
    ...(responseTypes && !responseTypes.includes('code')
      ? [certain('the provider does not offer the response type code', 'Allow the authorization code grant there.')]
      : []),
    ...(responseModes && responseModes.length > 0 && !responseModes.includes('query') ? [FORM_POST] : []),
    ...(challengeMethods?.includes('S256') && !pkce
      ? [likely('the provider offers PKCE (S256), which is off', 'Set PKCE=S256 (pkce: true).')]
      : []),
    ...(challengeMethods && !challengeMethods.includes('S256') && pkce
      ? [likely('the provider does not list PKCE by S256, which is on', 'If it refuses sign-ins, set PKCE=off.')]
      : []),
    ...(scopes && unlisted.length > 0
      ? [likely(`the provider does not list the scope ${unlisted.join(', ')}`, 'Check SCOPE, or allow it there.')]
      : []),
  ]
}

function demandsOfTokens({ signingAlgorithms }: ProviderDocument): Demand[] {
  if (!signingAlgorithms || signingAlgorithms.some(name => ALGORITHMS.includes(name))) return []
  return [
    certain(
      `the provider signs id_tokens by ${listOf(signingAlgorithms)} only, which Menshen does not take`,
      'Set RS256 or ES256 for this client at the provider.',
    ),
  ]
}

/** As the metadata calls our ways. */
const METHODS = {
  basic: 'client_secret_basic',
  post: 'client_secret_post',
  private_key_jwt: 'private_key_jwt',
  none: 'none',
} as const

function demandsOfClient(plan: ProviderPlan, { clientAuths, assertionAlgorithms }: Metadata): Demand[] {
  if (!clientAuths || clientAuths.length === 0) return []
  const { clientAuth, clientKey, assertion } = plan
  const ours = Object.entries(METHODS).filter(([, name]) => clientAuths.includes(name))
  const only = `the provider takes a client only by ${listOf(clientAuths)}`
  if (ours.length === 0) return [certain(only, `${NO_SECRET_JWT}: allow one of these for this client at the provider.`)]
  const isFitting = clientAuth
    ? clientAuths.includes(METHODS[clientAuth])
    : ours.some(([way]) => /^(basic|post)$/.test(way))
  if (!isFitting) {
    const ways = ours.map(([way]) => way).join(', ')
    return [likely(`${only}, and not by ${METHODS[clientAuth ?? 'basic']}`, `Set CLIENT_AUTH to one of: ${ways}.`)]
  }
  if (clientAuth !== 'private_key_jwt' || !clientKey || !assertionAlgorithms) return []
  const algorithm = algorithmFor(readClientKey(clientKey.reveal()), assertion.algorithm, assertionAlgorithms)
  if (assertionAlgorithms.includes(algorithm)) return []
  const taken = listOf(assertionAlgorithms)
  return [
    likely(
      `the provider takes private_key_jwt only by ${taken}, and not by ${algorithm}`,
      'Use a key for one of these.',
    ),
  ]
}

function listOf(names: readonly string[]): string {
  return printable(names.slice(0, 10).join(', '), 200)
}

/** An answer by which a provider refuses: its code, and the sentence that came with it, which is read and not repeated. */
export interface Refusal {
  readonly error: string
  readonly description?: string | undefined
}

/** What is behind a refusal; `undefined` if nothing points to it. */
export function causeOf(plan: ProviderPlan, metadata: Metadata | undefined, refusal: Refusal): Demand | undefined {
  const { error, description = '' } = refusal
  const demands = metadata ? demandsOf(plan, metadata) : []
  if (/dpop/i.test(error) || /\bdpop\b/i.test(description)) return DPOP
  if (/request_uri|pushed[ _]authorization|\bPAR\b/.test(description)) return PUSHED
  if (error === 'invalid_client' || error === 'unauthorized_client')
    return metadata && demandsOfClient(plan, metadata)[0]
  const found = demands.find(({ isCertain }) => isCertain)
  if (found) return found
  const isAboutChallenge = /code_challenge|code_verifier|pkce/i.test(description)
  return !plan.pkce && (isAboutChallenge || error === 'invalid_request') ? CHALLENGE : undefined
}

export const FORM_POST_SENTENCE = sentenceOf(FORM_POST)

/** For the log: what, and what to do. */
export function sentenceOf({ what, remedy }: Demand): string {
  return `${what}. ${remedy}`
}
