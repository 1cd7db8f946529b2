// The keys that a provider publishes. They are fetched again for an unknown key id, or for a signature that does not match (a key
// may have been replaced under the same id). Made-up tokens could cause many fetches, so only a few are made at once, then one
// every 30 seconds.
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { phrase, phrasedError } from '../text/text.ts'
import { createCachedValue } from '../util/cached-value.ts'
import { type BoundedFetch, readAnswer } from './fetch.ts'

/** For jose's `jwtVerify`. */
export interface ProviderKeys extends JWTVerifyGetKey {
  /** Fetches the keys again because a signature does not match; false if the allowance is used up. */
  refetch(): Promise<boolean>
  /** Resolves when there are any keys; rejects if they cannot be fetched. */
  warm(): Promise<void>
}

const FRESH_MS = 3_600_000
const FETCH_BURST = 5
const REFETCH_MS = 30_000
const MAX_KEYS = 200
/** Without any keys and without allowance, callers within this time after a failure get the same failure. */
const RETRY_MS = 1000

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(MAX_KEYS) })

export interface ProviderKeysOptions {
  readonly url: () => Promise<string>
  readonly fetch: BoundedFetch
  readonly now: () => number
}

export function createProviderKeys({ url, fetch, now }: ProviderKeysOptions): ProviderKeys {
  const keys = createCachedValue({ load: fetchKeys, freshMs: FRESH_MS, retryMs: RETRY_MS, now })
  const mayFetchForKey = createAllowance(now)
  // Separate: made-up signatures must not use up the allowance for new keys.
  const mayFetchForSignature = createAllowance(now)

  async function fetchKeys(): Promise<JWTVerifyGetKey> {
    const { status, body } = await readAnswer(await fetch(await url()))
    const found = keySet.safeParse(body)
    if (status !== 200 || !found.success) throw phrasedError('provider_answer', phrase('keys_unusable', { status }))
    return createLocalJWKSet(found.data)
  }

  async function current(): Promise<JWTVerifyGetKey> {
    const known = keys.latest()
    if (!known) {
      const failure = keys.recentFailure()
      if (failure && !mayFetchForKey()) throw failure.error
      return keys.reload()
    }
    // Withdrawn keys must not stay valid for ever. While the keys cannot be fetched, the old ones are used.
    return keys.isFresh() || !mayFetchForKey() ? known : keys.reload().catch(() => known)
  }

  async function find(...[header, token]: Parameters<JWTVerifyGetKey>) {
    const known = await current()
    try {
      return await known(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayFetchForKey()) throw error
      return (await keys.reload())(header, token)
    }
  }

  return Object.assign(find, {
    async warm() {
      await current()
    },

    async refetch() {
      if (!mayFetchForSignature()) return false
      await keys.reload()
      return true
    },
  })
}

/** A few at once, then one every 30 seconds. */
function createAllowance(now: () => number): () => boolean {
  let fetches = FETCH_BURST
  let countedAt = 0
  return () => {
    // If the clock was set back, fetches are earned from now on, and not only when it is as late again.
    countedAt = Math.min(countedAt, now())
    const earned = Math.floor((now() - countedAt) / REFETCH_MS)
    if (earned > 0) {
      fetches = Math.min(FETCH_BURST, fetches + earned)
      countedAt = now()
    }
    if (fetches === 0) return false
    fetches--
    return true
  }
}
