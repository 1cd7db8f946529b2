// The endpoints of a provider: those of the plan, and for OpenID Connect those of the discovery document. The document is fetched
// on first use, cached for an hour, and used longer while it cannot be fetched. If the plan has every endpoint that a sign-in
// needs, nothing is fetched.
import { z } from 'zod'
import { isPlainHttp } from '../config/conflicts.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { type Phrase, phrase, phrasedError } from '../text/text.ts'
import { createCachedValue } from '../util/cached-value.ts'
import { withDeadline } from '../util/deadline.ts'
import { sanitize } from '../util/safe-text.ts'
import { resolvesToPrivate } from './address-guard.ts'
import { type BoundedFetch, readAnswer, type WholeAnswer } from './fetch.ts'
import { usesMutualTls } from './mutual-tls.ts'
import type { Endpoints, ProviderPlan } from './plan.ts'
import { dropUndefined } from './presets/preset.ts'

export interface Metadata {
  readonly endpoints: Endpoints
  /** The expected `iss` in tokens and in the callback; absent where the provider does not say. */
  readonly issuer?: string
  /** Whether the provider promises `iss` in the callback (RFC 9207). */
  readonly sendsIssuer: boolean
  readonly clientAuths?: readonly string[]
  /** The algorithms for client assertions. */
  readonly assertionAlgorithms?: readonly string[]
  /** Absent: any asymmetric algorithm. */
  readonly signingAlgorithms?: readonly string[]
  /** Other parts of the discovery document, to find the cause of a failure; absent without a document. */
  readonly document?: ProviderDocument
}

/** What a provider supports and demands, by its discovery document. */
export interface ProviderDocument {
  readonly demandsPushedRequests: boolean
  readonly demandsSignedRequests: boolean
  /** The algorithms for proofs of DPoP; absent if the provider does not say. */
  readonly proofAlgorithms?: readonly string[] | undefined
  readonly responseTypes?: readonly string[] | undefined
  readonly responseModes?: readonly string[] | undefined
  readonly challengeMethods?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
  readonly signingAlgorithms?: readonly string[] | undefined
}

/** The address of an endpoint; throws if there is none. */
export function endpointOf({ endpoints }: Metadata, name: keyof Endpoints): string {
  const found = endpoints[name]
  if (found === undefined) throw phrasedError('bad_settings', phrase('no_such_endpoint', { name }))
  return found
}

export interface MetadataSource {
  get(): Promise<Metadata>
}

const FRESH_MS = 3_600_000
/** Callers within this time after a failure get the same failure, so that a provider that is down is not flooded. */
const RETRY_MS = 1000
const LOOKUP_MS = 5000

const address = z.url({ protocol: /^https?$/ })
const names = z.array(z.string()).max(100)
/** Some providers write an empty value instead of leaving it out. */
const optional = <T extends z.ZodType>(kind: T) => z.preprocess(value => value || undefined, kind.optional())
/** The endpoints for clients that present a certificate (RFC 8705, 5). */
const aliases = z.object({
  token_endpoint: optional(address),
  userinfo_endpoint: optional(address),
  revocation_endpoint: optional(address),
  introspection_endpoint: optional(address),
  pushed_authorization_request_endpoint: optional(address),
})
const document = z.object({
  issuer: z.string().min(1),
  authorization_endpoint: address,
  token_endpoint: address,
  userinfo_endpoint: optional(address),
  jwks_uri: address,
  end_session_endpoint: optional(address),
  revocation_endpoint: optional(address),
  introspection_endpoint: optional(address),
  // Only their own features depend on these two.
  pushed_authorization_request_endpoint: optional(address).catch(undefined),
  mtls_endpoint_aliases: z.unknown().optional(),
  authorization_response_iss_parameter_supported: optional(z.boolean()),
  token_endpoint_auth_methods_supported: optional(names),
  token_endpoint_auth_signing_alg_values_supported: optional(names),
  id_token_signing_alg_values_supported: optional(names),
})
type Document = z.infer<typeof document>

/** Nothing depends on these fields, so an invalid one is ignored. */
const advisory = z.object({
  require_pushed_authorization_requests: z.boolean().optional().catch(undefined),
  require_signed_request_object: z.boolean().optional().catch(undefined),
  dpop_signing_alg_values_supported: names.optional().catch(undefined),
  response_types_supported: names.optional().catch(undefined),
  response_modes_supported: names.optional().catch(undefined),
  code_challenge_methods_supported: names.optional().catch(undefined),
  scopes_supported: z.array(z.string()).optional().catch(undefined),
})

export interface MetadataOptions {
  readonly fetch: BoundedFetch
  readonly now: () => number
  readonly report: Report
  /** The deadline for resolving host names. */
  readonly timeoutMs?: number
}

export function createMetadata(plan: ProviderPlan, options: MetadataOptions): MetadataSource {
  return needsDiscovery(plan) ? discovered(plan, options) : planned(plan)
}

/** False if the plan has every endpoint that a sign-in needs, and no address of metadata. */
export function needsDiscovery({ kind, discoveryUrl, endpoints }: ProviderPlan): boolean {
  if (kind !== 'oidc') return false
  return discoveryUrl !== undefined || !(endpoints.authorization && endpoints.token && endpoints.jwks)
}

export function discoveryUrlOf({ discoveryUrl, issuer = '' }: ProviderPlan): string {
  return discoveryUrl ?? `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

function planned(plan: ProviderPlan): MetadataSource {
  const metadata: Metadata = {
    endpoints: plan.endpoints,
    sendsIssuer: plan.sendsIssuer,
    ...(plan.issuer ? { issuer: plan.issuer } : {}),
  }
  return { get: async () => metadata }
}

function discovered(
  plan: ProviderPlan,
  { fetch, now, report, timeoutMs = LOOKUP_MS }: MetadataOptions,
): MetadataSource {
  return createCachedValue({
    load: () => discover(plan, fetch, timeoutMs).catch(reportFailure),
    freshMs: FRESH_MS,
    retryMs: RETRY_MS,
    staleWhileReloading: true,
    now,
  })

  function reportFailure(error: unknown): never {
    report('metadata_unavailable', { provider: plan.id, ...errorFields(error) })
    throw error
  }
}

async function discover(plan: ProviderPlan, fetch: BoundedFetch, timeoutMs: number): Promise<Metadata> {
  const issuer = (plan.issuer ?? '').replace(/\/$/, '')
  const { url, response } = await fetchDocument(discoveryUrlOf(plan), fetch)
  const { status, body } = await readAnswer(response)
  if (status !== 200) throw phrasedError('provider_answer', phrase('discovery_answered', { status }))
  if (body === undefined) throw phrasedError('provider_answer', notJson(response))
  const found = document.safeParse(body)
  if (!found.success) {
    const fields = found.error.issues.map(issue => issue.path.join('.') || 'the whole')
    throw phrasedError('provider_answer', phrase('discovery_unusable', { fields: [...new Set(fields)] }))
  }
  const published = found.data.issuer
  if (!isExpectedIssuer(plan, published, issuer))
    throw phrasedError(
      'provider_answer',
      phrase('discovery_other_issuer', { said: sanitize(published, 200), expected: issuer }),
    )
  const served = withAliases(plan, found.data)
  const metadata = { ...metadataOf(plan, served), document: documentOf(served, body) }
  if (plan.httpsOnly && Object.values(metadata.endpoints).some(url => url !== undefined && isPlainHttp(url)))
    throw phrasedError('provider_answer', phrase('discovery_plain_http'))
  await refuseInsecureMetadata(plan.discoveryUrl === undefined ? issuer : url, served, timeoutMs)
  return metadata
}

const REDIRECTS = [301, 302, 303, 307, 308]

/** Follows one redirect to the same origin: some providers add a slash, or have the document at another path. */
async function fetchDocument(url: string, fetch: BoundedFetch): Promise<{ url: string; response: WholeAnswer }> {
  const response = await fetch(url)
  const location = response.headers.get('location') ?? ''
  if (!REDIRECTS.includes(response.status) || !URL.canParse(location, url)) return { url, response }
  const target = new URL(location, url)
  if (target.origin !== new URL(url).origin)
    throw phrasedError('provider_answer', phrase('discovery_other_origin', { origin: sanitize(target.origin, 200) }))
  return { url: target.href, response: await fetch(target.href) }
}

function notJson({ headers }: WholeAnswer): Phrase {
  const type = (headers.get('content-type') ?? '').split(';')[0]?.trim()
  return type ? phrase('discovery_not_json_but', { type: sanitize(type) }) : phrase('discovery_not_json')
}

/** Whether the document names its own issuer, apart from a final slash. Entra has a placeholder for the tenant's id. */
function isExpectedIssuer({ alsoIssuers }: ProviderPlan, published: string, issuer: string): boolean {
  return published === issuer || published === `${issuer}/` || alsoIssuers.includes(published)
}

/** The document with the endpoints for clients that present a certificate, if this client does. */
function withAliases(plan: ProviderPlan, found: Document): Document {
  if (!usesMutualTls(plan) || !found.mtls_endpoint_aliases) return found
  const { data } = aliases.safeParse(found.mtls_endpoint_aliases)
  if (data) return { ...found, ...dropUndefined(data) }
  throw phrasedError('provider_answer', phrase('discovery_unusable', { fields: 'mtls_endpoint_aliases' }))
}

function metadataOf({ endpoints, sendsIssuer }: ProviderPlan, found: Document): Metadata {
  const { token_endpoint_auth_methods_supported: clientAuths, id_token_signing_alg_values_supported: algorithms } =
    found
  const { token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms } = found
  return {
    issuer: found.issuer,
    endpoints: {
      authorization: endpoints.authorization ?? found.authorization_endpoint,
      token: endpoints.token ?? found.token_endpoint,
      refresh: endpoints.refresh,
      userInfo: endpoints.userInfo ?? found.userinfo_endpoint,
      jwks: endpoints.jwks ?? found.jwks_uri,
      logout: endpoints.logout ?? found.end_session_endpoint,
      revocation: endpoints.revocation ?? found.revocation_endpoint,
      introspection: endpoints.introspection ?? found.introspection_endpoint,
      par: endpoints.par ?? found.pushed_authorization_request_endpoint,
    },
    sendsIssuer: found.authorization_response_iss_parameter_supported ?? sendsIssuer,
    ...(clientAuths ? { clientAuths } : {}),
    ...(assertionAlgorithms ? { assertionAlgorithms } : {}),
    signingAlgorithms: algorithms ?? ['RS256'],
  }
}

function documentOf(found: Document, body: unknown): ProviderDocument {
  const published = advisory.parse(body)
  return {
    demandsPushedRequests: published.require_pushed_authorization_requests ?? false,
    demandsSignedRequests: published.require_signed_request_object ?? false,
    proofAlgorithms: published.dpop_signing_alg_values_supported,
    responseTypes: published.response_types_supported,
    responseModes: published.response_modes_supported,
    challengeMethods: published.code_challenge_methods_supported,
    scopes: published.scopes_supported,
    signingAlgorithms: found.id_token_signing_alg_values_supported,
  }
}

/** Refuses metadata that leads from https to http, or from the public network into a private one. */
async function refuseInsecureMetadata(issuer: string, found: Document, timeoutMs: number): Promise<void> {
  const addresses = Object.values(found).filter(value => typeof value === 'string' && address.safeParse(value).success)
  const isSecure = issuer.startsWith('https:')
  if (isSecure && addresses.some(url => !String(url).startsWith('https:')))
    throw phrasedError('provider_answer', phrase('discovery_plain_http'))
  // A name that does not resolve now is checked when a connection is opened.
  const isPrivate = (url: string) => withDeadline(resolvesToPrivate(url), timeoutMs, () => false).catch(() => false)
  const [isIssuerPrivate, ...verdicts] = await Promise.all([issuer, ...new Set(addresses.map(String))].map(isPrivate))
  if (!isIssuerPrivate && verdicts.includes(true))
    throw phrasedError('provider_answer', phrase('discovery_private_network'))
}
