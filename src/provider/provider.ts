// One identity provider: every way in which the rest of Menshen speaks with it. Nothing of an answer is believed before it
// has been read and checked.

import { decodeJwt } from 'jose'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { type Measure, type Report, type TraceCall, unmeasured, type Work } from '../events.ts'
import { createAddressGuard } from './address-guard.ts'
import { authorizationUrl, type SentAttempt } from './authorization-url.ts'
import { type BearerUser, canVerify, verifyBearer } from './bearer.ts'
import { createCompanyToken } from './company-token.ts'
import { causeOf, type Demand, type Refusal } from './demands.ts'
import { createMetadata, endpointOf } from './discovery.ts'
import { type BoundedFetch, createBoundedFetch, createSlots } from './fetch.ts'
import { isAccessTokenIssuer, matchesIssuer, type TokenName, verifySigned } from './id-token.ts'
import { createProviderKeys } from './jwks.ts'
import type { ProviderPlan } from './plan.ts'
import type { ProviderConnection } from './provider-connection.ts'
import { makeSignOutCalls, type SessionTokens, signOutCalls, signOutUrl } from './sign-out.ts'
import { introspectToken, type Redemption, redeemCode, refreshTokens, type TokenSet } from './token.ts'
import { askUserInfo, type MappedUser, mapUser, type ProviderClaims } from './user.ts'

/** What a sign-in asks the provider. */
export interface SignInCalls {
  redeem(redemption: Redemption): Promise<TokenSet>
  /** All that it says of the user, source by source. `code` counts for providers that spend it here. */
  fetchClaims(tokens: TokenSet, code: string): Promise<ProviderClaims>
  /** Who the user is, by what it says. */
  fetchUser(tokens: TokenSet, code: string): Promise<MappedUser>
}

/** Whom a token has to be for, by each interpretation of the path; `undefined` where neither a rule nor a setting says. */
export type Audiences = readonly (readonly string[] | undefined)[]

/** Its own calls have a connection each. */
export interface Provider extends SignInCalls {
  readonly plan: ProviderPlan
  /** Where the browser goes to sign in. Throws while the provider's metadata cannot be had. */
  authorizationUrl(attempt?: SentAttempt): Promise<string>
  /** Whether `iss` in a callback (each value that came) is this provider's, or may be missing. */
  acceptsCallbackIssuer(given: readonly string[]): Promise<boolean>
  /** What is behind an error that it sent to the callback, and what to do; `undefined` if nothing points to it. */
  explain(refusal: Refusal): Promise<Demand | undefined>
  /** Whether this is a name of the issuer of its tokens. */
  hasIssuer(issuer: string): Promise<boolean>
  /**
   * Runs a sign-in when there is a slot: waits if there are many under way, and is refused if there are too many. Its calls
   * share a connection that nobody else uses. Owners, which are the networks of those who sign in, are served in turn.
   */
  withSlot<T>(signIn: (calls: SignInCalls) => Promise<T>, owner?: string): Promise<T>
  refresh(held: SessionTokens & { readonly refreshToken: string }): Promise<TokenSet>
  /** Tells the provider, from server to server, that a session has ended. */
  signOut(held: SessionTokens): Promise<void>
  /** Where the browser goes to sign out there, and from there to /login; `undefined` if it need not. */
  signOutUrl(held: SessionTokens, state: string): Promise<string | undefined>
  /** Whether it publishes keys by which its signatures can be verified. */
  readonly canVerify: boolean
  /** The claims of something that it signed for us, called `name`. Throws if anything is wrong with it. */
  verify(token: string, requiredClaims: string[], name: TokenName): Promise<object>
  /** What it says of a token that somebody brought; `undefined` if it cannot be asked. */
  introspect(token: string): Promise<unknown>
  /**
   * Whose access token it is that somebody brought, if it is for each of `audiences`: for one of its names, or for us where
   * it has none. Throws `provider_refused` if not valid. `owner` is the network of whoever brought it, which has no more than
   * a share of the slots.
   */
  verifyBearer(token: string, audiences: Audiences, owner?: string): Promise<BearerUser>
  close(): Promise<void>
}

export interface ProviderOptions {
  readonly settings: Pick<Settings, 'BASE_URL' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'>
  readonly now: () => number
  readonly report: Report
  readonly measure?: Measure
  /** For each call; absent where nobody traces. */
  readonly traceCall?: TraceCall | undefined
}

/** A flood of callbacks is refused beyond this, instead of piling up. */
const SIGN_INS_WAITING = 500
const SIGN_OUT_TIMEOUT_MS = 2000
/** Of the slots for tokens that machines bring. */
const SHARE_OF_ONE_NETWORK = 1 / 4

export function createProvider(
  plan: ProviderPlan,
  { settings, now, report, measure = unmeasured, traceCall }: ProviderOptions,
): Provider {
  const { BASE_URL, PROVIDER_TIMEOUT_MS: timeoutMs } = settings
  const redirectUri = BASE_URL + plan.callbackPath
  // Without metadata every address is the operator's own.
  const guard = plan.kind === 'oidc' ? createAddressGuard(plan) : undefined
  const calls = createBoundedFetch(timeoutMs, guard?.lookup)
  const signOutFetch = createBoundedFetch(Math.min(SIGN_OUT_TIMEOUT_MS, timeoutMs), guard?.lookup)
  const discovery = createBoundedFetch(timeoutMs, guard?.issuerLookup)
  /** Every call that is made has its span. */
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
  const askKeys = traced('keys', calls.fetch)
  const fetchKeys: BoundedFetch = (url, init) => measure('provider', 'keys', () => askKeys(url, init))
  const keys = createProviderKeys({ url: async () => endpointOf(await metadata.get(), 'jwks'), fetch: fetchKeys, now })
  const connection: ProviderConnection = {
    plan,
    redirectUri,
    metadata,
    keys,
    fetch: calls.fetch,
    timeoutMs,
    now,
    report,
  }
  const asking = (what: Work['provider'], { fetch }: Pick<ProviderConnection, 'fetch'> = connection) => ({
    ...connection,
    fetch: traced(what, fetch),
  })
  const company = plan.kind === 'company_token' ? createCompanyToken(asking('user_info')) : undefined
  const slots = createSlots(settings.PROVIDER_PARALLEL_CALLS, SIGN_INS_WAITING)

  function signInCalls(connection: ProviderConnection): SignInCalls {
    async function fetchClaims(tokens: TokenSet, code: string): Promise<ProviderClaims> {
      const ask = () => (company ? company.userInfo(code) : askUserInfo(asking('user_info', connection), tokens))
      const userinfo = await measure('provider', 'user_info', ask)
      return { userinfo, id_token: tokens.claims, token: tokens.answer, access_token: inside(tokens.accessToken) }
    }
    return {
      redeem: redemption =>
        measure('provider', 'token', async () =>
          company ? company.tokenSet() : redeemCode(asking('token', connection), redemption),
        ),
      fetchClaims,
      fetchUser: async (tokens, code) => mapUser(await fetchClaims(tokens, code), plan),
    }
  }

  /** Whoever brings made-up tokens must not take the places of sign-ins, nor those of machines elsewhere. */
  const share = Math.ceil(settings.PROVIDER_PARALLEL_CALLS * SHARE_OF_ONE_NETWORK)
  const bearerSlots = createSlots(settings.PROVIDER_PARALLEL_CALLS, SIGN_INS_WAITING, share)

  return {
    plan,

    async authorizationUrl(attempt) {
      return authorizationUrl(endpointOf(await metadata.get(), 'authorization'), plan, redirectUri, attempt)
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

    async hasIssuer(name) {
      const known = await metadata.get()
      const { issuer } = known
      if (issuer === undefined) return false
      return matchesIssuer(name, issuer, plan.alsoIssuers) || isAccessTokenIssuer(name, known, plan)
    },

    withSlot: (signIn, owner) =>
      slots.withSlot(async () => {
        using conversation = calls.converse()
        return await signIn(signInCalls({ ...connection, fetch: conversation.fetch }))
      }, owner),

    ...signInCalls(connection),

    refresh: held => measure('provider', 'refresh', () => refreshTokens(asking('refresh'), held)),
    async signOut(held) {
      const due = await signOutCalls(connection, held, traced('sign_out', signOutFetch.fetch))
      if (due.length > 0) await measure('provider', 'sign_out', () => makeSignOutCalls(due))
    },
    signOutUrl: (held, state) => signOutUrl(connection, BASE_URL, held, state),

    canVerify: canVerify(plan),

    async verify(token, requiredClaims, name) {
      return verifySigned(connection, await metadata.get(), token, requiredClaims, { name })
    },

    introspect: token => measure('provider', 'introspection', () => introspectToken(asking('introspection'), token)),

    verifyBearer(token, audiences, owner) {
      const demanded = audiences.map(names => ({
        names: names ?? [plan.clientId, BASE_URL],
        isConfigured: names !== undefined,
      }))
      return bearerSlots.withSlot(() => verifyBearer(asking('introspection'), token, demanded, measure), owner)
    },

    async close() {
      for (const each of [calls, signOutFetch, discovery]) each.close()
    },
  }
}

/** Most are opaque: an error for each of them would cost more than the look. */
const JWT_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** It came from the token endpoint itself, so its claims are as good as that answer. An opaque one has none. */
function inside(accessToken: string): object | undefined {
  if (!JWT_SHAPE.test(accessToken)) return undefined
  try {
    return decodeJwt(accessToken)
  } catch {
    return undefined
  }
}

// Stands where a provider would be while its settings are missing: the login page says so, and nothing can be called.

export function unconfiguredProvider(plan: ProviderPlan): Provider {
  const refuse = async (): Promise<never> => {
    throw new MenshenError('bad_settings', `settings of the provider are missing: ${plan.missing.join(', ')}`)
  }
  const calls = { redeem: refuse, fetchClaims: refuse, fetchUser: refuse }
  return {
    ...calls,
    plan,
    authorizationUrl: async () => '',
    acceptsCallbackIssuer: async () => true,
    hasIssuer: async () => false,
    explain: async () => undefined,
    withSlot: signIn => signIn(calls),
    refresh: refuse,
    signOut: refuse,
    signOutUrl: async () => undefined,
    canVerify: false,
    verify: refuse,
    introspect: refuse,
    verifyBearer: refuse,
    close: async () => {},
  }
}
