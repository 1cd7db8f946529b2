// Machines that present an access token of the provider. The verdict about a token is cached for a moment, under its hash: the
// token itself is not cached.

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { roleOf } from '../access/roles.ts'
import type { Rules } from '../access/rules.ts'
import type { ScopedName } from '../access/scoped-name.ts'
import { ANY_AUDIENCE, type RoleConfig, type Rule } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import type { Caller } from '../http/caller.ts'
import { type BearerUser, TokenRejection } from '../provider/bearer.ts'
import { authenticationIn } from '../provider/id-token.ts'
import type { Audience, Audiences, Provider } from '../provider/provider.ts'
import { mayNeedIntrospection, type Providers, providerOfToken, scopeOf } from '../provider/providers.ts'
import { identityOf } from '../session/fields.ts'
import { atMost } from '../util/recent.ts'
import { resourceNames } from './protected-resources.ts'

/** A program: the machine or user that a token or a key belongs to. */
export interface ProgramCaller extends Caller {
  /** The token or key is valid at least until then. */
  readonly expiresAt: number
}

/** Why a token is not valid. */
export interface RefusedToken {
  readonly refused: string
  readonly detail?: string | undefined
}

/** The client that presents a token not yet known to be valid. */
export interface TokenClient {
  /** Its network, which has a share of the slots at the provider. */
  readonly owner: string
  /**
   * Counts one token: before it is sent to the provider, or when its signature is not valid. `undefined` if there were too
   * many. Otherwise a function that takes the count back for a valid token.
   */
  count(): Promise<(() => void) | undefined>
}

export interface BearerCallers {
  /** The owner of a token, if it is for each of `audiences`. Throws while that cannot be decided. */
  identify(token: string, audiences: Audiences, client: TokenClient): Promise<ProgramCaller | RefusedToken | 'limited'>
  /** Checks a token that was valid before; nothing is counted. */
  reidentify(token: string, audiences: Audiences): Promise<ProgramCaller | RefusedToken>
}

export interface BearerCallersOptions {
  readonly providers: Providers
  readonly roles: readonly RoleConfig[]
  readonly scopedName: ScopedName
  readonly now: () => number
}

type Verdict = ProgramCaller | RefusedToken
type TimedVerdict<V> = readonly [verdict: V, until: number]

interface CachedVerdict<V = Verdict | 'limited'> {
  /** `limited` if the client that first presented the token was; that is not cached. */
  readonly verdict: Promise<V>
  /** When the verdict expires; not known while the provider is being asked. */
  until: number
  /** Whether the token was valid at the last verdict: then the next one is not counted, even if the provider does not answer. */
  isValid: boolean
}

const VERDICT_TTL_MS = 30_000
const MAX_CACHED_VERDICTS = 10_000

export function createBearerCallers({ providers, roles, scopedName, now }: BearerCallersOptions): BearerCallers {
  const cache = new LRUCache<string, CachedVerdict>(atMost(MAX_CACHED_VERDICTS))

  function toCaller(provider: Provider, { userInfo, groups, claims, scopes, expiresAt }: BearerUser): ProgramCaller {
    const scope = scopeOf(provider)
    const userRole = roleOf({ provider: scope, username: userInfo.username, groups, claims }, roles)
    const user = { userInfo, userRole, groups, ...(scope === undefined ? {} : { provider: scope }) }
    const who = { ...identityOf(user, scopedName), isBearer: true as const, scopes }
    const authentication = authenticationIn(claims, now())
    return { user, who, authentication, expiresAt: expiresAt ?? now() + VERDICT_TTL_MS }
  }

  /** The verdict, and when it expires at the latest. */
  async function verify(
    token: string,
    audiences: Audiences,
    owner: string | undefined,
  ): Promise<TimedVerdict<Verdict>> {
    try {
      const provider = await providerOfToken(providers, token)
      const user = await provider.verifyBearer(token, audiences, owner)
      return [toCaller(provider, user), user.expiresAt ?? Number.POSITIVE_INFINITY]
    } catch (error) {
      if (!(error instanceof MenshenError) || error.code !== 'provider_refused') throw error
      const detail = error instanceof TokenRejection ? error.detail : undefined
      return [{ refused: error.message, detail }, Number.POSITIVE_INFINITY]
    }
  }

  /** A valid token is not counted. */
  async function countAndVerify(
    token: string,
    audiences: Audiences,
    { owner, count }: TokenClient,
  ): Promise<TimedVerdict<Verdict | 'limited'>> {
    const refund = await count()
    if (!refund) return ['limited', 0]
    const verified = await verify(token, audiences, owner)
    if ('who' in verified[0]) refund()
    return verified
  }

  /** From now on, others that present the same token wait for this verdict. The caller must await it. */
  function start<V extends Verdict | 'limited'>(key: string, verified: Promise<TimedVerdict<V>>): CachedVerdict<V> {
    const verdict = verified.then(([verdict]) => verdict)
    const entry: CachedVerdict<V> = {
      verdict,
      until: Number.POSITIVE_INFINITY,
      isValid: cache.get(key)?.isValid ?? false,
    }
    const evict = () => {
      if (cache.get(key) === entry) cache.delete(key)
    }
    cache.set(key, entry)
    verified.then(
      ([verdict, until]) => {
        if (verdict === 'limited') return evict()
        entry.until = Math.min(until, now() + VERDICT_TTL_MS)
        entry.isValid = typeof verdict === 'object' && 'who' in verdict
      },
      // If it fails, the next request asks again.
      () => {
        entry.until = 0
        if (!entry.isValid) evict()
      },
    )
    return entry
  }

  /** Checks a token that has already been counted or need not be. */
  async function ask(key: string, token: string, audiences: Audiences, owner?: string): Promise<Verdict> {
    const known = await current(key)?.verdict
    if (known !== undefined && known !== 'limited') return known
    return start(key, verify(token, audiences, owner)).verdict
  }

  function keyOf(token: string, audiences: Audiences): string {
    return hash('sha256', JSON.stringify([audiences, token]), 'base64url')
  }

  /** The cached verdict, if it has not expired. */
  function current(key: string): CachedVerdict | undefined {
    const known = cache.get(key)
    if (!known || known.until === Number.POSITIVE_INFINITY) return known
    const left = known.until - now()
    // With more time left than a verdict has, the clock was set back.
    return left > 0 && left <= VERDICT_TTL_MS ? known : undefined
  }

  return {
    async identify(token, audiences, client) {
      const { owner, count } = client
      const key = keyOf(token, audiences)
      const known = current(key)
      const isCounted = !known && !cache.get(key)?.isValid && mayNeedIntrospection(providers, token)
      const begin = () =>
        start<Verdict | 'limited'>(
          key,
          isCounted ? countAndVerify(token, audiences, client) : verify(token, audiences, owner),
        )
      const verdict = await (known ?? begin()).verdict
      if (verdict !== 'limited') {
        if ('who' in verdict || isCounted) return verdict
        return (await count()) ? verdict : 'limited'
      }
      const refund = isCounted ? undefined : await count()
      if (!refund) return 'limited'
      // Another network was above its limit.
      const own = await ask(key, token, audiences, owner)
      if ('who' in own) refund()
      return own
    },

    reidentify: (token, audiences) => ask(keyOf(token, audiences), token, audiences),
  }
}

/** What decides about a token. A reload replaces it. */
export interface BearerPolicy {
  readonly settings: Pick<Settings, 'BEARER_AUDIENCE' | 'BASE_URL'>
  readonly rules: Rules
  readonly bearers: BearerCallers
}

/**
 * An application may interpret the path in several ways: the token has to be for the audience of each rule that applies. A
 * token for the resource of a rule is only for that rule (RFC 8707), not for those below its path.
 */
export function audiencesOf(
  { BEARER_AUDIENCE, BASE_URL }: Pick<Settings, 'BEARER_AUDIENCE' | 'BASE_URL'>,
  rules: readonly Rule[],
): Audiences {
  const named = rules
    .filter(({ bearer }) => bearer)
    .map(({ path, audience }): Audience => {
      const isAny = audience === ANY_AUDIENCE
      const configured = audience === undefined ? BEARER_AUDIENCE : isAny ? undefined : [audience].flat()
      const addresses = [...resourceNames(BASE_URL, path), ...(configured ? [] : [BASE_URL])]
      return { configured, addresses, ...(isAny && { isAny }) }
    })
  const byText = new Map(named.map(names => [JSON.stringify(names), names]))
  return [...byText.values()]
}
