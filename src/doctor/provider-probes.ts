// What a sign-in needs of a provider: it must be reachable, identify itself, publish keys, keep time, and accept our client secret
// and our redirect address. None of these probes signs a user in.

import { hash, randomBytes, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { preferredClientAuth } from '../provider/client-auth.ts'
import { demandsOf } from '../provider/demands.ts'
import { createMetadata, discoveryUrlOf, type Metadata, needsDiscovery } from '../provider/discovery.ts'
import {
  type BoundedFetch,
  createBoundedFetch,
  readAnswer,
  UnsentRequestError,
  type WholeAnswer,
} from '../provider/fetch.ts'
import { TOLERANCE_SECONDS } from '../provider/id-token.ts'
import { ONLY_PROVIDER, type ProviderPlan } from '../provider/plan.ts'
import { createProvider, type Provider, type ProviderOptions } from '../provider/provider.ts'
import { RefusalError } from '../provider/refusal.ts'
import { newTicket } from '../session/ticket.ts'
import { type Phrase, type PhraseCode, phrase, quoted } from '../text/text.ts'
import { sanitize } from '../util/safe-text.ts'
import { type Finding, failure, good, type Probe, warning, whatFailed } from './finding.ts'
import { probeOrigin } from './upstream-probes.ts'

const CLOCK_WARNING_MS = 30_000
/** A Date header has whole seconds, and the answer takes a moment. */
const CLOCK_RESOLUTION_MS = 2000
/** With id_tokens, every sign-in is refused if the clocks are further apart than this. */
const CLOCK_FAILURE_MS = { oidc: TOLERANCE_SECONDS * 1000, oauth2: 300_000, company_token: 300_000 }

type Options = Pick<ProviderOptions, 'settings' | 'now'>

interface ProbeTarget {
  readonly name: string
  readonly plan: ProviderPlan
  readonly provider: Provider
  readonly fetch: BoundedFetch
  readonly redirectUri: string
  readonly now: () => number
}

/** `name` is `provider`, followed by the provider's id if there are several. */
export function providerProbe(name: string, plan: ProviderPlan, options: Options): Probe {
  return { name, run: () => (plan.missing.length > 0 ? missing(name, plan) : probeProvider(name, plan, options)) }
}

async function missing(name: string, plan: ProviderPlan): Promise<Finding[]> {
  const seen = phrase('provider_settings_missing', { names: plan.missing })
  return [failure(`${name} settings`, seen, phrase('set_provider_settings'))]
}

async function probeProvider(name: string, plan: ProviderPlan, { settings, now }: Options): Promise<Finding[]> {
  const timeoutMs = settings.PROVIDER_TIMEOUT_MS
  const report = () => {}
  const { fetch, close } = createBoundedFetch(timeoutMs, undefined, plan.certificate)
  const provider = createProvider(plan, { settings, now, report })
  const target = { name, plan, provider, fetch, redirectUri: settings.BASE_URL + plan.callbackPath, now }
  try {
    const planned = originsOf([plan.discoveryUrl ?? plan.issuer, ...Object.values(plan.endpoints)])
    const reaching = Promise.all(planned.map(origin => probeOrigin(name, origin, { timeoutMs, now })))
    // It may fail before it is awaited below.
    reaching.catch(() => {})
    const metadata = await createMetadata(plan, { fetch, now, report }).get().catch(asError)
    if (metadata instanceof Error) return [...(await reaching).flat(), await noDiscovery(target, metadata)]
    const further = originsOf(Object.values(metadata.endpoints)).filter(origin => !planned.includes(origin))
    const found = await Promise.all([
      reaching,
      Promise.all(further.map(origin => probeOrigin(name, origin, { timeoutMs, now }))),
      discovered(target, metadata),
      probeKeys(target, metadata),
      probeClientAuth(target, metadata, variant => createProvider(variant, { settings, now, report })),
      probeAuthorization(target),
      probeClientCertificate(target),
    ])
    return found.flat(2)
  } finally {
    await Promise.all([close(), provider.close()])
  }
}

function originsOf(addresses: readonly (string | undefined)[]): string[] {
  const usable = addresses.filter(url => url !== undefined && URL.canParse(url))
  return [...new Set(usable.map(url => new URL(url ?? '').origin))]
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('unknown')
}

async function noDiscovery({ name, plan, fetch }: ProbeTarget, error: Error): Promise<Finding> {
  const what = `${name} discovery`
  const isAway = error instanceof MenshenError && error.code === 'provider_unreachable'
  if (isAway) return failure(what, whatFailed(error), phrase('check_provider_running'))
  const issuer = await findIssuer(plan.discoveryUrl ?? plan.issuer, fetch)
  const remedy = issuer ? remedyForIssuer(plan, issuer) : phrase('auth_url_is_issuer', { url: discoveryUrlOf(plan) })
  return failure(what, whatFailed(error), remedy)
}

/** No address has more folders than this. */
const MAX_PATH_SEGMENTS = 6
const openIdDocument = z.object({ issuer: z.url({ protocol: /^https?$/ }), token_endpoint: z.string() })

/** The issuer of the same host that has its metadata at this address or above it; `undefined` if there is none. */
async function findIssuer(address: string | undefined, fetch: BoundedFetch): Promise<string | undefined> {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { origin, hostname, pathname } = new URL(address)
  const segments = pathname.split('/').filter(Boolean).slice(0, MAX_PATH_SEGMENTS)
  const bases = segments.map((_, index) => `/${segments.slice(0, segments.length - index).join('/')}`)
  const found = await Promise.all(
    [...bases, ''].map(async base => {
      try {
        const { status, body } = await readAnswer(await fetch(`${origin}${base}/.well-known/openid-configuration`))
        return status === 200 ? openIdDocument.safeParse(body).data?.issuer : undefined
      } catch {
        return undefined
      }
    }),
  )
  return found.find(issuer => issuer !== undefined && new URL(issuer).hostname === hostname)
}

function remedyForIssuer({ id, preset }: ProviderPlan, issuer: string): Phrase {
  const url = sanitize(issuer, 200)
  if (id === ONLY_PROVIDER && preset === 'oidc') return phrase('set_auth_url', { url })
  return id === ONLY_PROVIDER ? phrase('set_provider_oidc', { url }) : phrase('set_preset_oidc', { id, url })
}

async function discovered({ name, plan }: ProbeTarget, metadata: Metadata): Promise<Finding[]> {
  if (plan.kind !== 'oidc') return []
  if (!needsDiscovery(plan)) return [good(`${name} discovery`, phrase('discovery_not_needed'))]
  const calls = good(`${name} discovery`, phrase('calls_itself', { issuer: sanitize(metadata.issuer ?? '', 200) }))
  return [calls, ...assertFindings(`${name} demands`, plan, metadata), ...sharedSecretNote(`${name} demands`, metadata)]
}

/** Only a sign-in shows which algorithm a client is registered for. */
function sharedSecretNote(what: string, { document }: Metadata): Finding[] {
  const offered = document?.signingAlgorithms ?? []
  const symmetric = offered.filter(name => /^HS\d+$/.test(name))
  if (symmetric.length === 0 || symmetric.length === offered.length) return []
  return [good(what, phrase('also_signs_by_secret', { algorithms: sanitize(symmetric.join(', ')) }))]
}

/** What the provider requires according to its metadata. */
function assertFindings(what: string, plan: ProviderPlan, metadata: Metadata): Finding[] {
  const demands = demandsOf(plan, metadata)
  if (demands.length === 0) return [good(what, phrase('no_unmet_demands'))]
  return demands.map(({ what: seen, remedy, isCertain }) =>
    isCertain ? failure(what, seen, remedy) : warning(what, seen, remedy),
  )
}

const keySet = z.object({
  keys: z
    .array(z.looseObject({ kty: z.string() }))
    .min(1)
    .max(200),
})

async function probeKeys({ name, fetch }: ProbeTarget, { endpoints }: Metadata): Promise<Finding[]> {
  const what = `${name} keys`
  const remedy = phrase('check_jwks_url')
  if (!endpoints.jwks) return []
  try {
    const { status, body } = await readAnswer(await fetch(endpoints.jwks))
    const { success, data } = keySet.safeParse(body)
    if (status !== 200 || !success) return [failure(what, phrase('no_usable_keys', { status }), remedy)]
    return [good(what, phrase('keys_published', { count: data.keys.length }))]
  } catch (error) {
    return [failure(what, whatFailed(error), remedy)]
  }
}

/** `connect` creates a provider with settings that differ from those in use. */
async function probeClientAuth(
  { name, plan, provider, redirectUri, fetch }: ProbeTarget,
  metadata: Metadata,
  connect: (variant: ProviderPlan) => Provider,
): Promise<Finding[]> {
  const what = `${name} client`
  const probe = async (variant: ProviderPlan, ask: (provider: Provider) => Promise<unknown>): Promise<Finding> => {
    const other = connect(variant)
    return probeClient(what, variant, redirectUri, ask(other)).finally(() => other.close())
  }
  let ask = redeemInvalidCode
  let finding = await probeClient(what, plan, redirectUri, ask(provider))
  if (plan.kind !== 'oidc' && isWrongEndpoint(finding)) {
    const issuer = await findIssuer(plan.endpoints.token, fetch)
    if (issuer) {
      const seen = phrase('is_openid_connect', { preset: plan.preset })
      return [failure(`${name} settings`, seen, remedyForIssuer(plan, issuer)), finding]
    }
  }
  // A client without a secret cannot introspect.
  if (finding.level === 'good' && metadata.endpoints.introspection !== undefined && plan.clientAuth !== 'none') {
    // Some providers check the code first and refuse a made-up one from any client.
    const second = await probeClient(what, plan, redirectUri, introspectInvalidToken(provider))
    const isDoubtful = second.seen.code === 'client_refused'
    const unknownClient = { ...plan, clientId: `menshen-doctor-${randomBytes(8).toString('hex')}` }
    if (!isDoubtful || (await probe(unknownClient, redeemInvalidCode)).seen.code !== 'client_known') return [finding]
    finding = second
    ask = introspectInvalidToken
  }
  if (finding.level === 'good' || !CLIENT_AUTH_FINDINGS.includes(finding.seen.code)) return [finding]
  for (const { variant, setting } of variantsOf(plan, metadata))
    if ((await probe(variant, ask)).seen.code === 'client_known')
      return [failure(what, finding.seen, phrase('accepted_with_setting', { setting: settingFor(plan, setting) }))]
  return [finding]
}

/** Introspection shows whether the client is accepted: if so, it answers that the token is not valid. */
async function introspectInvalidToken(provider: Provider): Promise<unknown> {
  const answer = await provider.introspect(`menshen-doctor-${randomBytes(16).toString('hex')}`)
  const isActive = z.object({ active: z.literal(true) }).safeParse(answer).success
  if (isActive) return answer
  throw new RefusalError('provider_refused', quoted('introspection'), 200, 'invalid_token')
}

/** Whether the answer does not come from a token endpoint of this preset. */
function isWrongEndpoint({ seen }: Finding): boolean {
  if (seen.code !== 'client_refused') return WRONG_ENDPOINT_FINDINGS.includes(seen.code)
  return !CLIENT_REFUSED.some(name => String(seen.values.answer).includes(name))
}

async function redeemInvalidCode(provider: Provider): Promise<unknown> {
  const { plan } = provider
  const code = `menshen-doctor-${randomBytes(16).toString('hex')}`
  const verifier = plan.pkce ? newTicket() : undefined
  const tokens = await provider.redeem({ code, state: 'menshen-doctor', verifier, nonce: newTicket() })
  // If no token endpoint takes codes, they are spent at user info.
  return plan.kind === 'company_token' ? provider.fetchClaims(tokens, code) : tokens
}

/** Seen if the address is not that of a token endpoint. */
const WRONG_ENDPOINT_FINDINGS: readonly string[] = [
  'no_token_endpoint',
  'code_answer_unclear',
  'answer_not_json',
] satisfies PhraseCode[]
/** Seen if the client may authenticate in another way than the provider expects. */
const CLIENT_AUTH_FINDINGS: readonly string[] = [
  'client_refused',
  'with_cause',
  'code_answer_unclear',
  'token_endpoint_broken',
] satisfies PhraseCode[]

interface Variant {
  readonly variant: ProviderPlan
  /** The setting, its field in `providers`, and the value. */
  readonly setting: readonly [name: string, field: string, value: string]
}

/** Other ways in which the same client can authenticate. */
function variantsOf(plan: ProviderPlan, { clientAuths }: Metadata): Variant[] {
  const method = plan.clientAuth ?? preferredClientAuth(clientAuths)
  if (method === 'private_key_jwt')
    return (['token_endpoint', 'issuer'] as const)
      .filter(audience => audience !== plan.assertion.audience)
      .map(audience => ({
        variant: { ...plan, assertion: { ...plan.assertion, audience } },
        setting: ['CLIENT_ASSERTION_AUDIENCE', 'clientAssertionAudience', audience],
      }))
  if ((method !== 'basic' && method !== 'post') || plan.kind === 'company_token') return []
  const other = method === 'basic' ? 'post' : 'basic'
  return [{ variant: { ...plan, clientAuth: other }, setting: ['CLIENT_AUTH', 'clientAuth', other] }]
}

function settingFor({ id }: ProviderPlan, [name, field, value]: Variant['setting']): string {
  return id === ONLY_PROVIDER ? `${name}=${value}` : `providers.${id}.${field}: '${value}'`
}

/** Requests the sign-in page as a browser would. The answer also shows the provider's time. */
async function probeAuthorization(target: ProbeTarget): Promise<Finding[]> {
  const { name, plan, provider, fetch, redirectUri, now } = target
  const what = `${name} redirect address`
  try {
    const state = `${newTicket()}_idp`
    const sent = { state, ...(plan.kind === 'oidc' && { nonce: newTicket() }), ...(plan.pkce && challenge()) }
    const url = await provider.authorizationUrl(sent).catch(asError)
    if (url instanceof Error) return [notPushed(target, url)]
    const response = await fetch(url, { headers: { accept: 'text/html' } })
    const isPushed = new URL(url).searchParams.has('request_uri')
    return [
      ...(isPushed ? [good(`${name} pushed request`, phrase('pushed'))] : []),
      await redirectFinding(what, target, response),
      ...clockFindings(`${name} clock`, response, now(), CLOCK_FAILURE_MS[plan.kind]),
    ]
  } catch (error) {
    const seen = phrase('sign_in_page_unseen', { reason: whatFailed(error) })
    return [warning(what, seen, phrase('browser_goes_there', { url: redirectUri }))]
  }
}

/** The metadata was read, so only the pushed request can have failed. */
function notPushed({ name }: ProbeTarget, error: Error): Finding {
  const remedy = error instanceof RefusalError ? error.remedy : undefined
  const isMissing = error instanceof MenshenError && error.code === 'bad_settings'
  const usual = isMissing ? phrase('set_push_endpoint') : phrase('check_push')
  return failure(`${name} pushed request`, whatFailed(error), remedy ?? usual)
}

const CERTIFICATE_WARNING_MS = 14 * 24 * 3_600_000

/** The certificate for mutual TLS. */
async function probeClientCertificate({ name, plan, now }: ProbeTarget): Promise<Finding[]> {
  if (!plan.certificate) return []
  const what = `${name} client certificate`
  const { validFromDate, validToDate } = new X509Certificate(plan.certificate.cert.reveal())
  const [from, to] = [validFromDate, validToDate].map(date => date.toISOString().slice(0, 10)) as [string, string]
  const remedy = phrase('renew_client_certificate')
  if (now() < validFromDate.getTime() || now() > validToDate.getTime())
    return [failure(what, phrase('client_certificate_expired', { from, to }), remedy)]
  if (now() > validToDate.getTime() - CERTIFICATE_WARNING_MS)
    return [warning(what, phrase('client_certificate_ends', { date: to }), remedy)]
  return [good(what, phrase('client_certificate_valid', { date: to }))]
}

function challenge() {
  return { challenge: hash('sha256', newTicket(), 'base64url') }
}

const CLIENT_ERRORS = ['unauthorized_client', 'invalid_client', 'access_denied']

async function redirectFinding(
  what: string,
  { provider, redirectUri }: ProbeTarget,
  { status, headers }: WholeAnswer,
): Promise<Finding> {
  const location = headers.get('location') ?? ''
  const isBack = location.startsWith(redirectUri) && URL.canParse(location)
  const params = isBack ? new URL(location).searchParams : undefined
  const error = params?.get('error') ?? null
  if (error !== null) {
    const cause = await provider.explain({ error, description: params?.get('error_description') ?? undefined })
    const seen = phrase('accepted_but_error', { url: redirectUri, error: sanitize(error) })
    if (cause) return failure(what, phrase('with_cause', { seen, cause: cause.what }), cause.remedy)
    if (CLIENT_ERRORS.includes(error)) return failure(what, seen, phrase('check_client_id_allowed'))
    if (/_required$/.test(error)) return good(what, phrase('redirect_accepted', { url: redirectUri }))
    return warning(what, seen, phrase('check_scope_and_registration'))
  }
  const shown = !isBack && URL.canParse(location) ? new URL(location).searchParams.get('error') : null
  if (shown && !/_required$/.test(shown))
    return failure(
      what,
      phrase('redirected_to_error', { error: sanitize(shown), url: redirectUri }),
      phrase('register_redirect_and_check', { url: redirectUri }),
    )
  if (status >= 500) return failure(what, phrase('sign_in_page_broken', { status }), phrase('ask_provider_admin'))
  if (NOT_FOUND_STATUSES.includes(status))
    return failure(what, phrase('redirect_answered', { status, url: redirectUri }), phrase('check_address_and_client'))
  if (status >= 400)
    return failure(
      what,
      phrase('redirect_answered', { status, url: redirectUri }),
      phrase('register_redirect_and_check', { url: redirectUri }),
    )
  return good(what, phrase('redirect_accepted_so_far', { url: redirectUri }))
}

function clockFindings(what: string, { headers }: WholeAnswer, now: number, failureMs: number): Finding[] {
  const theirs = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(theirs)) return []
  const apart = Math.abs(theirs - now)
  if (apart < CLOCK_RESOLUTION_MS) return [good(what, phrase('clocks_agree'))]
  const seconds = Math.round(apart / 1000)
  const seen = now > theirs ? phrase('clock_ahead', { seconds }) : phrase('clock_behind', { seconds })
  const remedy = phrase('set_clocks')
  if (apart > failureMs) return [failure(what, seen, remedy)]
  return [apart > CLOCK_WARNING_MS ? warning(what, seen, remedy) : good(what, seen)]
}

// How the provider answers a made-up code. It always refuses it, and the error shows whether it accepts our client,
// our secret and our redirect address.

/** The error codes of RFC 6749, and those of providers that have their own. */
const CODE_REFUSED = ['invalid_grant', 'invalid_token', 'bad_verification_code', 'invalid_code']
const CLIENT_REFUSED = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials']
const REDIRECT_REFUSED = ['redirect_uri_mismatch', 'invalid_redirect_uri', 'redirect_mismatch']
/** WeCom: a wrong code; a wrong secret, id or company. */
const COMPANY_CODE_REFUSED = ['40029', '40163', '42003']
const COMPANY_CLIENT_REFUSED = ['40001', '40013', '40056', '40091']
const NOT_FOUND_STATUSES = [404, 405, 410]

/** `attempt` is the redemption of a code that the provider never gave. */
export async function probeClient(
  what: string,
  plan: ProviderPlan,
  redirectUri: string,
  attempt: Promise<unknown>,
): Promise<Finding> {
  try {
    await attempt
  } catch (error) {
    return error instanceof RefusalError ? clientFinding(what, plan, redirectUri, error) : unusable(what, plan, error)
  }
  return failure(what, phrase('made_up_code_accepted'), phrase('do_not_use_provider'))
}

function clientFinding(what: string, plan: ProviderPlan, redirectUri: string, error: RefusalError): Finding {
  const { status, errorCode = '' } = error
  const isCompany = plan.kind === 'company_token'
  const answer = `${status}${errorCode && ` ${errorCode}`}`
  const codeRefused = [...CODE_REFUSED, ...plan.refreshEnds, ...(isCompany ? COMPANY_CODE_REFUSED : [])]
  const clientRefused = [...CLIENT_REFUSED, ...(isCompany ? COMPANY_CLIENT_REFUSED : [])]
  if (codeRefused.includes(errorCode)) return good(what, phrase('client_known', { answer }))
  if (REDIRECT_REFUSED.includes(errorCode))
    return failure(
      what,
      phrase('redirect_not_registered', { answer }),
      phrase('register_redirect', { url: redirectUri }),
    )
  if (error.remedy) return failure(what, whatFailed(error), error.remedy)
  if (clientRefused.includes(errorCode) || status === 401)
    return failure(what, phrase('client_refused', { answer }), phrase('check_client_credentials'))
  if (NOT_FOUND_STATUSES.includes(status))
    return failure(what, phrase('no_token_endpoint', { answer }), phrase('check_provider_addresses'))
  if (status >= 500) return failure(what, phrase('token_endpoint_broken', { answer }), phrase('ask_provider_admin'))
  return warning(what, phrase('code_answer_unclear', { answer }), phrase('sign_in_will_tell'))
}

function unusable(what: string, plan: ProviderPlan, error: unknown): Finding {
  if (!(error instanceof MenshenError)) return failure(what, whatFailed(error), phrase('check_client_key'))
  // A server that does not accept a certificate closes the connection.
  const isBroken = error.code === 'provider_unreachable' && !(error instanceof UnsentRequestError)
  if (plan.certificate && isBroken)
    return failure(what, phrase('certificate_broke', { reason: whatFailed(error) }), phrase('register_certificate'))
  const remedy = error.code === 'provider_unreachable' ? phrase('check_way_to_provider') : phrase('no_token_answer')
  return failure(what, whatFailed(error), remedy)
}
