// Where a provider's endpoints are: what the plan says, and for OpenID Connect what its discovery document adds. The
// document is asked for when it is first needed, kept for an hour, and used on while it cannot be had anew.
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { factsOf, MenshenError } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { isPlainHttp } from '../../settings/conflicts.ts'
import { type BoundedFetch, readAnswer } from '../calls/bounded-fetch.ts'
import type { Endpoints, ProviderPlan } from '../plan.ts'
import { leadsToPrivate } from './private-address.ts'

export interface Metadata {
  readonly endpoints: Endpoints
  /** What `iss` has to be, in tokens and in the callback; absent where the provider does not say. */
  readonly issuer?: string
  /** Whether the provider promises `iss` in the callback (RFC 9207). */
  readonly sendsIssuer: boolean
  readonly clientAuths?: readonly string[]
  /** Absent: any that only the provider can sign with. */
  readonly signingAlgorithms?: readonly string[]
}

/** An address that has to be there. */
export function endpointOf({ endpoints }: Metadata, name: keyof Endpoints): string {
  const found = endpoints[name]
  if (found === undefined) throw new MenshenError('bad_settings', `the provider has no ${name} address`)
  return found
}

export interface MetadataSource {
  get(): Promise<Metadata>
}

const FRESH_MS = 3_600_000
/** After a failure: whoever comes in between gets the same one, so that a provider that is down is not asked by all. */
const RETRY_MS = 1000
const LOOKUP_MS = 5000

const address = z.url({ protocol: /^https?$/ })
const names = z.array(z.string()).max(100)
/** Some write nothing where others leave out. */
const optional = <T extends z.ZodType>(kind: T) => z.preprocess(value => value || undefined, kind.optional())
const document = z.object({
  issuer: z.string().min(1),
  authorization_endpoint: address,
  token_endpoint: address,
  userinfo_endpoint: optional(address),
  jwks_uri: address,
  end_session_endpoint: optional(address),
  revocation_endpoint: optional(address),
  introspection_endpoint: optional(address),
  authorization_response_iss_parameter_supported: optional(z.boolean()),
  token_endpoint_auth_methods_supported: optional(names),
  id_token_signing_alg_values_supported: optional(names),
})
type Document = z.infer<typeof document>

export interface MetadataOptions {
  readonly fetch: BoundedFetch
  readonly now: () => number
  readonly report: Report
  /** How long names may take to resolve. */
  readonly timeoutMs?: number
}

export function createMetadata(plan: ProviderPlan, options: MetadataOptions): MetadataSource {
  return plan.kind === 'oidc' ? discovered(plan, options) : planned(plan)
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
  let known: Metadata | undefined
  let knownSince = 0
  let asking: Promise<Metadata> | undefined
  let failure: { readonly error: unknown; readonly at: number } | undefined

  async function ask(): Promise<Metadata> {
    try {
      known = await discover(plan, fetch, timeoutMs)
      knownSince = now()
      failure = undefined
      return known
    } catch (error) {
      failure = { error, at: now() }
      report('metadata_unavailable', { provider: plan.id, ...factsOf(error) })
      throw error
    } finally {
      asking = undefined
    }
  }

  const start = () => {
    asking ??= ask()
    return asking
  }

  return {
    async get() {
      const failedJustNow = failure !== undefined && now() - failure.at < RETRY_MS
      if (known) {
        if (now() - knownSince > FRESH_MS && !failedJustNow) start().catch(() => {})
        return known
      }
      if (failedJustNow) throw failure?.error
      return start()
    },
  }
}

async function discover(plan: ProviderPlan, fetch: BoundedFetch, timeoutMs: number): Promise<Metadata> {
  const issuer = (plan.issuer ?? '').replace(/\/$/, '')
  const url = `${issuer}/.well-known/openid-configuration`
  const { status, body } = await readAnswer(await fetch(url))
  const found = document.safeParse(body)
  if (status !== 200) throw new MenshenError('provider_answer', `discovery answered ${status}`)
  if (!found.success) {
    const places = found.error.issues.map(issue => issue.path.join('.') || 'the whole')
    throw new MenshenError('provider_answer', `unusable in the discovery document: ${[...new Set(places)].join(', ')}`)
  }
  if (!isItself(plan, found.data.issuer, issuer))
    throw new MenshenError('provider_answer', 'the discovery document is of another issuer')
  const metadata = metadataOf(plan, found.data)
  if (plan.httpsOnly && Object.values(metadata.endpoints).some(url => url !== undefined && isPlainHttp(url)))
    throw new MenshenError('provider_answer', 'the discovery document leads to plain http')
  await refuseTrap(issuer, found.data, timeoutMs)
  return metadata
}

/** Exactly, its last slash aside; Entra writes a hole where each tenant's id belongs. */
function isItself({ alsoIssuers }: ProviderPlan, said: string, issuer: string): boolean {
  return said === issuer || said === `${issuer}/` || alsoIssuers.includes(said)
}

function metadataOf({ endpoints, sendsIssuer }: ProviderPlan, found: Document): Metadata {
  const { token_endpoint_auth_methods_supported: clientAuths, id_token_signing_alg_values_supported: algorithms } =
    found
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
    },
    sendsIssuer: found.authorization_response_iss_parameter_supported ?? sendsIssuer,
    ...(clientAuths ? { clientAuths } : {}),
    signingAlgorithms: algorithms ?? ['RS256'],
  }
}

/** From https nothing leads to plain http, and from the open network nothing into a private one. */
async function refuseTrap(issuer: string, found: Document, timeoutMs: number): Promise<void> {
  const addresses = Object.values(found).filter(value => typeof value === 'string' && address.safeParse(value).success)
  const isSecure = issuer.startsWith('https:')
  if (isSecure && addresses.some(url => !String(url).startsWith('https:')))
    throw new MenshenError('provider_answer', 'the discovery document leads to plain http')
  // What does not resolve now is judged when it is connected to.
  const tooLate = pause(timeoutMs, false, { ref: false })
  const isPrivate = (url: string) => Promise.race([leadsToPrivate(url).catch(() => false), tooLate])
  if (await isPrivate(issuer)) return
  const verdicts = await Promise.all([...new Set(addresses.map(String))].map(isPrivate))
  if (verdicts.includes(true))
    throw new MenshenError('provider_answer', 'the discovery document leads into a private network')
}
