// Machines that bring an access token of the provider. What was found out about a token is kept for a moment, under its
// hash: the token itself stays nowhere.

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { roleOf } from '../access/roles.ts'
import type { Rules, ScopedName } from '../access/rules.ts'
import type { RoleConfig, Rule } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { type BearerFacts, TokenRefused } from '../provider/bearer.ts'
import type { Audiences, Provider } from '../provider/provider.ts'
import { mayBeShown, type Providers, providerOfToken, scopeOf } from '../provider/providers.ts'
import type { Caller } from '../proxy/proxy-request.ts'
import { identityOf } from '../session/session-facts.ts'

/** The machine that a token belongs to. */
export interface BearerCaller extends Caller {
  /** Until when that counts at least. */
  readonly expiresAt: number
}

/** Why a token is not valid, in our own words. */
export interface RefusedToken {
  readonly refused: string
  readonly detail?: string | undefined
}

/** Whoever brings a token that is not known to be valid. */
export interface Bringer {
  /** Its network, which has a share of the slots at the provider. */
  readonly owner: string
  /**
   * Counts one token: before it is shown to the provider, or when its signature turns out to be none. `undefined` if there
   * were too many. Otherwise what to call if the token is valid, and so counts for nothing.
   */
  count(): Promise<(() => void) | undefined>
}

export interface BearerCallers {
  /** Whose token it is, if it is for each of `audiences`. Throws while that cannot be told. */
  identify(token: string, audiences: Audiences, bringer: Bringer): Promise<BearerCaller | RefusedToken | 'limited'>
  /** The same for a token that was valid before; nothing is counted. */
  reidentify(token: string, audiences: Audiences): Promise<BearerCaller | RefusedToken>
}

export interface BearerCallersOptions {
  readonly providers: Providers
  readonly roles: readonly RoleConfig[]
  readonly scopedName: ScopedName
  readonly now: () => number
}

type Verdict = BearerCaller | RefusedToken
type Judged<V> = readonly [verdict: V, until: number]

interface Kept {
  /** `limited` if whoever brought it first was; that is not kept. */
  readonly verdict: Promise<Verdict | 'limited'>
  /** Not known while the provider is being asked. */
  until: number
  /** It was when it was asked about last: then asking again counts for nothing, also if the provider does not answer. */
  isValid: boolean
}

const KEPT_MS = 30_000
const MOST_KEPT = 10_000

export function createBearerCallers({ providers, roles, scopedName, now }: BearerCallersOptions): BearerCallers {
  const kept = new LRUCache<string, Kept>({ max: MOST_KEPT })

  function toCaller(provider: Provider, { userInfo, groups, claims, scopes, expiresAt }: BearerFacts): BearerCaller {
    const scope = scopeOf(provider)
    const userRole = roleOf({ provider: scope, username: userInfo.username, groups, claims }, roles)
    const session = { userInfo, userRole, groups, ...(scope === undefined ? {} : { provider: scope }) }
    const who = { ...identityOf(session, scopedName), isBearer: true as const, scopes }
    return { session, who, expiresAt: expiresAt ?? now() + KEPT_MS }
  }

  /** The verdict, and until when it counts at most. */
  async function judge(token: string, audiences: Audiences, owner: string | undefined): Promise<Judged<Verdict>> {
    try {
      const provider = await providerOfToken(providers, token)
      const facts = await provider.bearerFacts(token, audiences, owner)
      return [toCaller(provider, facts), facts.expiresAt ?? Number.POSITIVE_INFINITY]
    } catch (error) {
      if (!(error instanceof MenshenError) || error.code !== 'provider_refused') throw error
      const detail = error instanceof TokenRefused ? error.detail : undefined
      return [{ refused: error.message, detail }, Number.POSITIVE_INFINITY]
    }
  }

  /** A token that turns out to be valid counts for nothing. */
  async function countAndJudge(
    token: string,
    audiences: Audiences,
    { owner, count }: Bringer,
  ): Promise<Judged<Verdict | 'limited'>> {
    const giveBack = await count()
    if (!giveBack) return ['limited', 0]
    const judged = await judge(token, audiences, owner)
    if ('who' in judged[0]) giveBack()
    return judged
  }

  /** From now on others that bring the same token wait for this verdict. */
  function start(key: string, judged: Promise<Judged<Verdict | 'limited'>>): Kept {
    const verdict = judged.then(([verdict]) => verdict)
    const entry: Kept = { verdict, until: Number.POSITIVE_INFINITY, isValid: kept.get(key)?.isValid ?? false }
    const forget = () => {
      if (kept.get(key) === entry) kept.delete(key)
    }
    kept.set(key, entry)
    judged.then(
      ([verdict, until]) => {
        if (verdict === 'limited') return forget()
        entry.until = Math.min(until, now() + KEPT_MS)
        entry.isValid = 'who' in verdict
      },
      // What could not be told is asked again.
      () => {
        entry.until = 0
        if (!entry.isValid) forget()
      },
    )
    return entry
  }

  /** The same, for a token that was counted already or need not be. */
  async function ask(key: string, token: string, audiences: Audiences, owner?: string): Promise<Verdict> {
    const known = await current(key)?.verdict
    if (known !== undefined && known !== 'limited') return known
    const judged = judge(token, audiences, owner)
    start(key, judged)
    return (await judged)[0]
  }

  function keyOf(token: string, audiences: Audiences): string {
    return hash('sha256', JSON.stringify([audiences, token]), 'base64url')
  }

  /** What is known and counts now. */
  function current(key: string): Kept | undefined {
    const known = kept.get(key)
    return known && now() < known.until ? known : undefined
  }

  return {
    async identify(token, audiences, bringer) {
      const { owner, count } = bringer
      const key = keyOf(token, audiences)
      const known = current(key)
      const isCounted = !known && !kept.get(key)?.isValid && mayBeShown(providers, token)
      const begin = () =>
        start(key, isCounted ? countAndJudge(token, audiences, bringer) : judge(token, audiences, owner))
      const verdict = await (known ?? begin()).verdict
      if (verdict !== 'limited') {
        if ('who' in verdict || isCounted) return verdict
        return (await count()) ? verdict : 'limited'
      }
      const giveBack = isCounted ? undefined : await count()
      if (!giveBack) return 'limited'
      // It was another network that was above its limit.
      const own = await ask(key, token, audiences, owner)
      if ('who' in own) giveBack()
      return own
    },

    reidentify: (token, audiences) => ask(keyOf(token, audiences), token, audiences),
  }
}

/** What decides about a token. A reload replaces it. */
export interface BearerPolicy {
  readonly settings: Pick<Settings, 'BEARER_AUDIENCE'>
  readonly rules: Rules
  readonly bearers: BearerCallers
}

/** An application may interpret the path in several ways: the token has to be for the audience of each rule that applies. */
export function audiencesOf({ BEARER_AUDIENCE }: Pick<Settings, 'BEARER_AUDIENCE'>, rules: readonly Rule[]): Audiences {
  const named = rules
    .filter(({ bearer }) => bearer)
    .map(({ audience }) => (audience === undefined ? BEARER_AUDIENCE : [audience].flat()))
  const byText = new Map(named.map(names => [JSON.stringify(names), names]))
  return [...byText.values()]
}
