// One identity provider: all calls to it. Every answer is parsed and checked before it is used.

import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { type Measure, type TraceCall, unmeasured, type Work } from '../measure.ts'
import { createAddressGuard } from './address-guard.ts'
import { type AuthorizationRequest, buildAuthorizationUrl } from './authorization-url.ts'
import { type BearerUser, canVerify, introspectToken, verifyBearer } from './bearer.ts'
import { createCompanyToken } from './company-token.ts'
import type { ProviderConnection } from './connection.ts'
import { causeOf, type Demand, type Refusal } from './demands.ts'
import { createMetadata, endpointOf } from './discovery.ts'
import { createDpop } from './dpop.ts'
import { type BoundedFetch, createBoundedFetch } from './fetch.ts'
import { isAccessTokenIssuer, matchesIssuer, type TokenName, unverifiedClaims, verifySigned } from './id-token.ts'
import { inAppUrl } from './in-app.ts'
import { createProviderKeys } from './jwks.ts'
import type { ProviderPlan, Texts } from './plan.ts'
import { pushEndpoint, pushedAuthorizationUrl } from './pushed-request.ts'
import { fetchRefreshedUser, type UserBefore } from './refreshed-user.ts'
import { makeSignOutCalls, revocationCalls, type SessionTokens, signOutCalls, signOutUrl } from './sign-out.ts'
import { createSlots } from './slots.ts'
import { type Redemption, redeemCode, refreshTokens, requestGrant, type TokenSet } from './token.ts'
import { fetchUserInfo, type MappedUser, mapUser, type ProviderClaims } from './user.ts'

/** The calls of a sign-in. */
export interface SignInCalls {
  redeem(redemption: Redemption): Promise<TokenSet>
  /** All claims of the user, source by source. `code` is for providers that redeem it here. */
  fetchClaims(tokens: TokenSet, code: string): Promise<ProviderClaims>
  /** The user, mapped from these claims. */
  fetchUser(tokens: TokenSet, code: string): Promise<MappedUser>
}

/** The audiences that a token may have, by one interpretation of the path. */
export interface Audience {
  /** From a rule or a setting; if absent, the client's identifier. */
  readonly configured?: readonly string[] | undefined
  /** `audience: 'any'` of the rule: introspected tokens of every client are accepted. */
  readonly isAny?: true
  /** The addresses of what was requested. */
  readonly addresses: readonly string[]
}

/** The audiences of each interpretation of the path. */
export type Audiences = readonly Audience[]

/** Each of its calls has a separate connection. */
export interface Provider extends SignInCalls {
  readonly plan: ProviderPlan
  /**
   * The URL at which the browser signs in. Throws while provider metadata is unavailable, or if the provider does not accept a
   * pushed request. `owner` is the network of the client: owners are served in turn.
   */
  authorizationUrl(attempt?: AuthorizationRequest, owner?: string): Promise<string>
  /** Whether the values of `iss` in a callback are those of this provider, or may be missing. */
  acceptsCallbackIssuer(given: readonly string[]): Promise<boolean>
  /** The cause of an error in the callback, and what to do; `undefined` if nothing points to one. */
  explain(refusal: Refusal): Promise<Demand | undefined>
  /** The issuer, by which clients find its metadata; `undefined` if it has none. */
  authorizationServer(): Promise<string | undefined>
  /** Whether its tokens may have this issuer. */
  hasIssuer(issuer: string): Promise<boolean>
  /**
   * Runs a sign-in when a slot is free: it waits if many are in progress, and is refused if there are too many. Its calls share a
   * connection that no other sign-in uses. Owners, which are networks of clients, are served in turn.
   */
  withSlot<T>(signIn: (calls: SignInCalls) => Promise<T>, owner?: string): Promise<T>
  refresh(tokens: SessionTokens & { readonly refreshToken: string }): Promise<TokenSet>
  /**
   * The response of the token endpoint to another grant, with the names of RFC 6749. The grant must change nothing at the
   * provider, because it is sent again if it cannot have arrived. It runs when a slot is free, and sign-ins do not wait for it.
   * Owners, which are users, are served in turn.
   */
  requestGrant(what: Work['provider'], grant: Texts, owner?: string): Promise<object>
  /**
   * The user after a refresh, with at most one call. Throws `SubjectMismatch` if it is another user, and `RequirementError` if
   * `require` no longer admits them.
   */
  refreshUser(tokens: TokenSet, before: UserBefore): Promise<MappedUser>
  /** Notifies the provider, by a direct call, that a session has ended. */
  signOut(tokens: SessionTokens): Promise<void>
  /** Revokes these access tokens if a sign-out would. */
  revoke(tokens: readonly string[]): Promise<void>
  /** Revokes tokens that will not be used, in the background, if tokens are revoked at all. A failure is reported. */
  discard(tokens: SessionTokens): void
  /** The URL at which the browser signs out, which leads back to the login page; `undefined` if there is none. */
  signOutUrl(tokens: SessionTokens, state: string): Promise<string | undefined>
  /** Whether it publishes keys that verify its signatures. */
  readonly canVerify: boolean
  /** The claims of a token that the provider signed for us; `name` is for messages. Throws if it is not valid. */
  verify(token: string, requiredClaims: string[], name: TokenName): Promise<object>
  /** The introspection response for a token; `undefined` without that endpoint. */
  introspect(token: string): Promise<unknown>
  /**
   * The user of an access token, if it satisfies each of `audiences` by one of its names. Throws
   * `provider_refused` if the token is not valid. `owner` is the network of the client, which has at most a share of the slots.
   */
  verifyBearer(token: string, audiences: Audiences, owner?: string): Promise<BearerUser>
  close(): Promise<void>
}

export interface ProviderOptions {
  readonly settings: Pick<Settings, 'BASE_URL' | 'LOGIN_PATH' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'>
  readonly now: () => number
  readonly report: Report
  readonly measure?: Measure
  /** Traces each call; absent without tracing. */
  readonly traceCall?: TraceCall | undefined
}

/** More waiting calls of one kind than this are refused. */
const MAX_WAITING = 500
const SIGN_OUT_TIMEOUT_MS = 2000
/** One network's share of the slots for tokens of machines. */
const NETWORK_SHARE = 1 / 4

export function createProvider(
  plan: ProviderPlan,
  { settings, now, report, measure = unmeasured, traceCall }: ProviderOptions,
): Provider {
  const { BASE_URL, LOGIN_PATH, PROVIDER_TIMEOUT_MS: timeoutMs } = settings
  const redirectUri = BASE_URL + plan.callbackPath
  // Without metadata all addresses are configured by the operator.
  const guard = plan.kind === 'oidc' ? createAddressGuard(plan) : undefined
  const calls = createBoundedFetch(timeoutMs, guard?.lookup, plan.certificate)
  const signOutFetch = createBoundedFetch(Math.min(SIGN_OUT_TIMEOUT_MS, timeoutMs), guard?.lookup, plan.certificate)
  const discovery = createBoundedFetch(timeoutMs, guard?.issuerLookup, plan.certificate)
  /** Each call has a span. */
  const traced = (what: Work['provider'], fetch: BoundedFetch): BoundedFetch =>
    traceCall ? (url, init) => traceCall(what, { method: init?.method ?? 'GET', url }, () => fetch(url, init)) : fetch
  const askMetadata = traced('metadata', discovery.fetch)
  const discover: BoundedFetch = (url, init) => measure('provider', 'metadata', () => askMetadata(url, init))
  const metadata = createMetadata(plan, {
    fetch: guard ? guard.learnFrom(discover) : discover,
    now,
    report,
    timeoutMs,
  })
  const fetchTracedKeys = traced('keys', calls.fetch)
  const fetchKeys: BoundedFetch = (url, init) => measure('provider', 'keys', () => fetchTracedKeys(url, init))
  const keys = createProviderKeys({ url: async () => endpointOf(await metadata.get(), 'jwks'), fetch: fetchKeys, now })
  const connection: ProviderConnection = {
    plan,
    redirectUri,
    metadata,
    keys,
    fetch: calls.fetch,
    dpop: createDpop(plan),
    timeoutMs,
    now,
    report,
  }
  const tracedConnection = (what: Work['provider'], { fetch }: Pick<ProviderConnection, 'fetch'> = connection) => ({
    ...connection,
    fetch: traced(what, fetch),
  })
  const company = plan.kind === 'company_token' ? createCompanyToken(tracedConnection('user_info')) : undefined
  const parallel = settings.PROVIDER_PARALLEL_CALLS
  /** Each kind of call has its own slots, so that none waits for another kind. */
  const slots = {
    signIn: createSlots(parallel, MAX_WAITING),
    grant: createSlots(parallel, MAX_WAITING),
    /** When many sign-ins fail, tokens beyond this number are left to expire. */
    discard: createSlots(parallel, MAX_WAITING),
    /** Anyone can start an attempt, so users who come back with a code do not wait for them. */
    push: createSlots(parallel, MAX_WAITING),
    /** Made-up tokens must not take slots from machines in other networks. */
    bearer: createSlots(parallel, MAX_WAITING, Math.ceil(parallel * NETWORK_SHARE)),
  }

  function signInCalls(connection: ProviderConnection): SignInCalls {
    async function fetchClaims(tokens: TokenSet, code: string): Promise<ProviderClaims> {
      const ask = () =>
        company ? company.userInfo(code) : fetchUserInfo(tracedConnection('user_info', connection), tokens)
      const userinfo = await measure('provider', 'user_info', ask)
      return {
        userinfo,
        id_token: tokens.claims,
        token: tokens.answer,
        access_token: claimsInToken(tokens.accessToken),
      }
    }
    return {
      redeem: redemption =>
        measure('provider', 'token', async () =>
          company ? company.tokenSet() : redeemCode(tracedConnection('token', connection), redemption, discard),
        ),
      fetchClaims,
      fetchUser: async (tokens, code) => mapUser(await fetchClaims(tokens, code), plan),
    }
  }

  async function revokeAll(tokens: readonly SessionTokens[]): Promise<void> {
    const due = await revocationCalls(connection, tokens, traced('sign_out', signOutFetch.fetch))
    if (due.length > 0) await measure('provider', 'sign_out', () => makeSignOutCalls(due))
  }

  function discard(tokens: SessionTokens): void {
    if (plan.revoke !== 'always') return
    slots.discard
      .withSlot(() => revokeAll([tokens]))
      .catch((error: unknown) => report('tokens_not_revoked', { ...errorFields(error), provider: plan.id }))
  }

  return {
    plan,

    async authorizationUrl(attempt, owner) {
      const inApp = attempt?.inApp && inAppUrl(plan, redirectUri, attempt.state)
      if (inApp) return inApp
      const known = await metadata.get()
      const endpoint = attempt && pushEndpoint(plan, known)
      if (!endpoint) return buildAuthorizationUrl(endpointOf(known, 'authorization'), plan, redirectUri, attempt)
      const push = () => pushedAuthorizationUrl(tracedConnection('pushed_request'), known, endpoint, attempt)
      return slots.push.withSlot(() => measure('provider', 'pushed_request', push), owner)
    },

    async acceptsCallbackIssuer([first, ...more]) {
      const { issuer, sendsIssuer } = await metadata.get()
      if (issuer === undefined) return true
      if (first === undefined) return !sendsIssuer
      return more.length === 0 && matchesIssuer(first, issuer, plan.alsoIssuers)
    },

    async explain(refusal) {
      return causeOf(plan, await metadata.get().catch(() => undefined), refusal)
    },

    async authorizationServer() {
      const { issuer: configured } = plan
      const published = await metadata.get().then(
        ({ issuer }) => issuer,
        () => undefined,
      )
      // The published issuer decides whether it has a final slash. That of several tenants is a template, which no client could
      // use.
      return published?.replace(/\/$/, '') === configured?.replace(/\/$/, '') ? published : configured
    },

    async hasIssuer(name) {
      const known = await metadata.get()
      const { issuer } = known
      if (issuer === undefined) return false
      return matchesIssuer(name, issuer, plan.alsoIssuers) || isAccessTokenIssuer(name, known, plan)
    },

    withSlot: (signIn, owner) =>
      slots.signIn.withSlot(async () => {
        using conversation = calls.openConversation()
        return await signIn(signInCalls({ ...connection, fetch: conversation.fetch }))
      }, owner),

    ...signInCalls(connection),

    refresh: tokens => measure('provider', 'refresh', () => refreshTokens(tracedConnection('refresh'), tokens)),
    requestGrant: (what, grant, owner) =>
      slots.grant.withSlot(() => measure('provider', what, () => requestGrant(tracedConnection(what), grant)), owner),
    refreshUser: (tokens, before) =>
      fetchRefreshedUser(tracedConnection('user_info'), tokens, claimsInToken(tokens.accessToken), before, measure),
    async signOut(tokens) {
      const due = await signOutCalls(connection, tokens, traced('sign_out', signOutFetch.fetch))
      if (due.length > 0) await measure('provider', 'sign_out', () => makeSignOutCalls(due))
    },
    async revoke(tokens) {
      await revokeAll(tokens.map(accessToken => ({ accessToken })))
    },
    discard,
    signOutUrl: (tokens, state) => signOutUrl(connection, BASE_URL + LOGIN_PATH, tokens, state),

    canVerify: canVerify(plan),

    async verify(token, requiredClaims, name) {
      return verifySigned(connection, await metadata.get(), token, requiredClaims, { name })
    },

    introspect: token =>
      measure('provider', 'introspection', () => introspectToken(tracedConnection('introspection'), token)),

    verifyBearer(token, audiences, owner) {
      const demanded = audiences.map(({ configured, addresses, isAny }) => ({
        names: [...(configured ?? [plan.clientId]), ...addresses],
        isConfigured: configured !== undefined,
        isAny: isAny === true,
      }))
      return slots.bearer.withSlot(
        () => verifyBearer(tracedConnection('introspection'), token, demanded, measure),
        owner,
      )
    },

    async close() {
      for (const each of [calls, signOutFetch, discovery]) each.close()
    },
  }
}

/** Most tokens are opaque: an error for each would cost more than this check. */
const JWT_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** The token came from the token endpoint, so its claims are as trustworthy as that answer. Opaque tokens have none. */
function claimsInToken(accessToken: string): object | undefined {
  return JWT_SHAPE.test(accessToken) ? unverifiedClaims(accessToken) : undefined
}

// The provider while its settings are missing: the login page says so, and every call fails.

export function unconfiguredProvider(plan: ProviderPlan): Provider {
  const refuse = async (): Promise<never> => {
    throw new MenshenError('bad_settings', `provider settings are missing: ${plan.missing.join(', ')}`)
  }
  const calls = { redeem: refuse, fetchClaims: refuse, fetchUser: refuse }
  return {
    ...calls,
    plan,
    authorizationUrl: async () => '',
    acceptsCallbackIssuer: async () => true,
    authorizationServer: async () => undefined,
    hasIssuer: async () => false,
    explain: async () => undefined,
    withSlot: signIn => signIn(calls),
    refresh: refuse,
    requestGrant: refuse,
    refreshUser: refuse,
    signOut: refuse,
    revoke: refuse,
    discard: () => {},
    signOutUrl: async () => undefined,
    canVerify: false,
    verify: refuse,
    introspect: refuse,
    verifyBearer: refuse,
    close: async () => {},
  }
}
