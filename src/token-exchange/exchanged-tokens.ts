// Tokens for applications, in exchange for the access tokens of their users. One call per session and target at a time, across all
// processes. A token is cached with the loaded session, and in the store for other processes:
//
//   key     exchanged:<hash of the session's key, the target and the access token>    a refresh leads to another record
//   value   the token and until when it is used, sealed under the ticket of the session
//   label   exchanged.<key of the session>

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { UnsentRequestError } from '../provider/fetch.ts'
import type { Provider } from '../provider/provider.ts'
import { RefusalError } from '../provider/refusal.ts'
import { createBackoffs } from '../session/backoffs.ts'
import type { CachedToken, LoadedSession } from '../session/cache.ts'
import { sessionFields, userKey } from '../session/fields.ts'
import { createLeases, leaseLife } from '../session/lease.ts'
import { createOutages } from '../session/outages.ts'
import { latestEnd, type Session } from '../session/record.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { isTicket, sealingKey } from '../session/ticket.ts'
import { entryPages } from '../stores/pages.ts'
import type { Store, StoredEntry } from '../stores/store.ts'
import { atMost } from '../util/recent.ts'
import { type ExchangedToken, type ExchangeTarget, exchangeToken } from './exchange.ts'

/** Whose token is exchanged. */
type TokenUser = Pick<Session, 'userInfo' | 'provider'>

export interface ExchangedTokens {
  /** The token of a session for a target, if it is available without waiting. */
  getSync(loaded: LoadedSession, target: ExchangeTarget): string | undefined
  /** The token, requested if necessary. Throws `TokenExchangeError`. */
  get(ticket: string, loaded: LoadedSession, target: ExchangeTarget): Promise<string>
  /** The token for a machine, in exchange for the valid one that it presents. It is cached only in this process. */
  getForMachine(accessToken: string, user: TokenUser, target: ExchangeTarget): Promise<string>
  /**
   * Removes the tokens of a session that has ended by its own sign-out: they cannot be decrypted without its ticket. They are revoked
   * where a sign-out revokes tokens; no request waits for that.
   */
  endAllOf(ticket: string, ended: Pick<LoadedSession, 'key' | 'session'>): Promise<void>
  /** Resolves when no exchange and no revocation is under way. */
  settle(): Promise<void>
}

/** There is no token for the application. */
export class TokenExchangeError extends MenshenError {
  /** An error code of the provider or of Menshen. */
  readonly reason: string

  constructor(error: unknown) {
    const known = error instanceof MenshenError ? error : undefined
    super(known?.code ?? 'provider_answer', known?.message ?? 'the exchange of the token failed', error)
    this.reason = reasonOf(error)
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof TokenExchangeError) return error.reason
  if (error instanceof RefusalError && error.errorCode !== undefined) return error.errorCode
  return error instanceof MenshenError ? error.code : 'unknown_error'
}

/** Another exchange of the same kind has just failed, so the provider is not asked again. */
class RecentFailure extends TokenExchangeError {
  override readonly reason = 'recently_failed'

  constructor() {
    super(new MenshenError('provider_unreachable', 'the exchange of this token failed a moment ago'))
  }
}

interface ExchangedTokensOptions {
  readonly store: Store
  readonly providers: { get(id: string | undefined): Pick<Provider, 'requestGrant' | 'revoke'> | undefined }
  readonly settings: Pick<Settings, 'PROVIDER_TIMEOUT_MS' | 'SESSION_MAX_HOURS'>
  readonly now: () => number
  readonly report: Report
}

/** A token is used until this long before it expires. One that lives for less than twice that is used for half of its life. */
const MARGIN_SECONDS = 30
/** The lifetime of a token whose response does not have one. */
const DEFAULT_LIFETIME_SECONDS = 60
/** A program can ask for any number of audiences. */
const MAX_TOKENS_PER_SESSION = 20
const MAX_MACHINE_TOKENS = 1000
/** While the provider does not answer, or after one failure of this session. */
const MAX_BACKOFF_MS = 5000

const recordSchema = z.object({ token: z.string(), until: z.number() })
type UsableToken = z.infer<typeof recordSchema>

export function createExchangedTokens(options: ExchangedTokensOptions): ExchangedTokens {
  const { store, providers, settings, now, report } = options
  const leases = createLeases(store, leaseLife(settings.PROVIDER_TIMEOUT_MS), now, report)
  const backoffs = createBackoffs(now, MAX_BACKOFF_MS)
  /** Of a provider, or of its exchanges for one target. */
  const outages = createOutages(now, MAX_BACKOFF_MS)
  const inFlight = new Map<string, Promise<UsableToken>>()
  const revocations = new Set<Promise<void>>()
  const machineTokens = new LRUCache<string, UsableToken>(atMost(MAX_MACHINE_TOKENS))

  /** Concurrent calls with the same key share one result. */
  function singleFlight(key: string, work: () => Promise<UsableToken>): Promise<UsableToken> {
    const running = inFlight.get(key)
    if (running) return running
    const started = work()
      .catch(error => {
        throw error instanceof TokenExchangeError ? error : new TokenExchangeError(error)
      })
      .finally(() => inFlight.delete(key))
    inFlight.set(key, started)
    return started
  }

  function assertNoFailure(key: string, user: TokenUser, target: ExchangeTarget): void {
    const isOutage = outageNames(user, target).some(name => outages.isOn(name, userKey(user)))
    if (isOutage || backoffs.isOn(key)) throw new RecentFailure()
  }

  /**
   * A refusal is about this user. Without a connection the provider answers no user; with one, a call without an answer says nothing
   * about other targets.
   */
  function noteFailure(error: unknown, key: string, user: TokenUser, target: ExchangeTarget): void {
    const [ofProvider, ofTarget] = outageNames(user, target)
    const hasNoAnswer = error instanceof MenshenError && error.code === 'provider_unreachable'
    if (error instanceof UnsentRequestError) outages.note(ofProvider)
    else if (hasNoAnswer) outages.note(ofTarget, userKey(user))
    else if (!backoffs.isOn(key)) backoffs.lengthen(key)
  }

  /** Asks the provider, unless it has just failed. */
  async function ask(key: string, accessToken: string, user: TokenUser, target: ExchangeTarget): Promise<UsableToken> {
    const { provider: id } = user
    const provider = providers.get(id)
    if (!provider) throw new MenshenError('provider_refused', 'the provider of this session is no longer configured')
    assertNoFailure(key, user, target)
    try {
      const exchanged = await exchangeToken(provider, accessToken, target, userKey(user))
      backoffs.reset(key)
      for (const name of outageNames(user, target)) outages.reset(name)
      return usable(exchanged, now())
    } catch (error) {
      noteFailure(error, key, user, target)
      throw error
    }
  }

  /** Whether the session has ended during the exchange, also at another instance. */
  async function hasEnded({ key }: LoadedSession): Promise<boolean> {
    return (await store.readLatest(key)) === undefined
  }

  async function read(key: string, ticket: string): Promise<UsableToken | undefined> {
    const stored = await store.read(key)
    return stored && open(stored, ticket)
  }

  function open({ key, value }: Pick<StoredEntry, 'key' | 'value'>, ticket: string): UsableToken | undefined {
    const opened = decodeJson(recordSchema, unsealValue(sealingKey(ticket), value, key))
    return opened && opened.until > now() ? opened : undefined
  }

  async function save(key: string, ticket: string, loaded: LoadedSession, usable: UsableToken): Promise<void> {
    const value = sealValue(sealingKey(ticket), encodeJson(usable), key)
    const expiresAt = Math.min(usable.until, latestEnd(loaded.signedInAt, settings.SESSION_MAX_HOURS))
    const entry = { value, expiresAt, labels: [labelOf(loaded.key)] }
    // The token is valid, whether or not other processes get to know it.
    await store.create(key, entry).catch(() => {})
  }

  /** Locks, checks again, requests and saves; or waits for the process that does. */
  async function find(
    key: string,
    ticket: string,
    loaded: LoadedSession,
    target: ExchangeTarget,
  ): Promise<UsableToken> {
    const { session } = loaded
    if (!isTicket(ticket) || !session.accessToken || session.dpopKey !== undefined)
      throw new MenshenError('provider_answer', 'the session has no access token that could be exchanged')
    const name = `${loaded.key}.${key}`
    for (;;) {
      const known = await read(key, ticket)
      if (known) return known
      // Avoids a write for each request that fails.
      assertNoFailure(key, session, target)
      const lease = await leases.take(name)
      if (!lease) {
        const result = await leases.waitForHolder(name, async () => (await read(key, ticket)) !== undefined)
        // A failure of the lease's holder applies to all who wait.
        if (result === 'failed') throw new RecentFailure()
        continue
      }
      try {
        const saved = await read(key, ticket)
        if (saved) return saved
        const asked = await ask(key, session.accessToken, session, target)
        await save(key, ticket, loaded, asked)
        if (!(await hasEnded(loaded))) return asked
        await store.remove(key)
        revokeLater([asked.token], loaded)
        throw new MenshenError('provider_refused', 'the session ended during the exchange')
      } finally {
        lease.release()
      }
    }
  }

  async function revoke(tokens: readonly string[], ended: Pick<LoadedSession, 'key' | 'session'>): Promise<void> {
    try {
      await providers.get(ended.session.provider)?.revoke(tokens)
    } catch (error) {
      report('provider_not_told', { ...errorFields(error), ...sessionFields(ended) })
    }
  }

  function revokeLater(tokens: readonly string[], ended: Pick<LoadedSession, 'key' | 'session'>): void {
    const revocation = revoke(tokens, ended).finally(() => revocations.delete(revocation))
    revocations.add(revocation)
  }

  function getSync({ exchangedTokens = [] }: LoadedSession, { id }: ExchangeTarget): string | undefined {
    for (const cached of exchangedTokens) if (cached.id === id) return cached.until > now() ? cached.token : undefined
    return undefined
  }

  return {
    getSync,

    async get(ticket, loaded, target) {
      const cached = getSync(loaded, target)
      if (cached !== undefined) return cached
      const key = keyOf(loaded, target)
      const found = await singleFlight(key, () => find(key, ticket, loaded, target))
      remember(loaded, { id: target.id, ...found })
      return found.token
    },

    async getForMachine(accessToken, user, target) {
      const names = ['machine', target.id, user.provider ?? null, accessToken]
      const key = hash('sha256', JSON.stringify(names), 'base64url')
      const cached = machineTokens.get(key)
      if (cached && cached.until > now()) return cached.token
      const found = await singleFlight(key, () => ask(key, accessToken, user, target))
      machineTokens.set(key, found)
      return found.token
    },

    async endAllOf(ticket, ended) {
      const tokens: string[] = []
      for await (const entries of entryPages(store, labelOf(ended.key))) {
        await Promise.all(entries.map(({ key }) => store.remove(key)))
        tokens.push(...entries.flatMap(entry => open(entry, ticket)?.token ?? []))
      }
      if (tokens.length > 0) revokeLater(tokens.slice(0, MAX_TOKENS_PER_SESSION), ended)
    },

    async settle() {
      await Promise.allSettled(inFlight.values())
      // Also those that an exchange has begun.
      await Promise.all(revocations)
      await leases.settle()
    },
  }
}

function usable(
  { token, expiresInSeconds: lifetime = DEFAULT_LIFETIME_SECONDS }: ExchangedToken,
  now: number,
): UsableToken {
  return { token, until: now + (lifetime - Math.min(MARGIN_SECONDS, lifetime / 2)) * 1000 }
}

function remember(loaded: LoadedSession, cached: CachedToken): void {
  const others = (loaded.exchangedTokens ?? []).filter(({ id }) => id !== cached.id)
  loaded.exchangedTokens = [cached, ...others].slice(0, MAX_TOKENS_PER_SESSION)
}

function keyOf({ key, session }: LoadedSession, { id }: ExchangeTarget): string {
  return `exchanged:${hash('sha256', JSON.stringify([key, id, session.accessToken]), 'base64url')}`
}

function outageNames({ provider = '' }: TokenUser, target: ExchangeTarget): [ofProvider: string, ofTarget: string] {
  return [`provider ${provider}`, `provider ${provider} target ${target.id}`]
}

function labelOf(sessionKey: string): string {
  return `exchanged.${sessionKey}`
}
