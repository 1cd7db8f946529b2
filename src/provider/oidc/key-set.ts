// The keys that a provider publishes. A key that is not known is looked for at once, but not for everybody who makes one
// up: a few looks, then one each half minute.
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { MenshenError } from '../../errors.ts'
import type { BoundedFetch } from '../calls/bounded-fetch.ts'
import { readAnswer } from '../calls/bounded-fetch.ts'

/** For jose's `jwtVerify`. */
export type KeySet = JWTVerifyGetKey

const FRESH_MS = 3_600_000
const LOOKS_AT_ONCE = 5
const LOOK_AGAIN_MS = 30_000
const MOST_KEYS = 200
/** While there are no keys at all: after a few looks, whoever comes within this time gets the same failure. */
const RETRY_MS = 1000

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(MOST_KEYS) })

export interface KeySetOptions {
  readonly url: () => Promise<string>
  readonly fetch: BoundedFetch
  readonly now: () => number
}

export function createKeySet({ url, fetch, now }: KeySetOptions): KeySet {
  let keys: KeySet | undefined
  let keysSince = 0
  let asking: Promise<KeySet> | undefined
  let looks = LOOKS_AT_ONCE
  let countedAt = 0
  let failure: { readonly error: unknown; readonly at: number } | undefined

  async function ask(): Promise<KeySet> {
    try {
      const { status, body } = await readAnswer(await fetch(await url()))
      const found = keySet.safeParse(body)
      if (status !== 200 || !found.success)
        throw new MenshenError('provider_answer', `the published keys cannot be used (status ${status})`)
      keys = createLocalJWKSet(found.data)
      keysSince = now()
      failure = undefined
      return keys
    } catch (error) {
      failure = { error, at: now() }
      throw error
    } finally {
      asking = undefined
    }
  }

  const look = () => {
    asking ??= ask()
    return asking
  }

  function mayLookAgain(): boolean {
    const earned = Math.floor((now() - countedAt) / LOOK_AGAIN_MS)
    if (earned > 0) {
      looks = Math.min(LOOKS_AT_ONCE, looks + earned)
      countedAt = now()
    }
    if (looks === 0) return false
    looks--
    return true
  }

  async function current(): Promise<KeySet> {
    if (!keys) {
      if (failure && now() - failure.at < RETRY_MS && !mayLookAgain()) throw failure.error
      return look()
    }
    const old = keys
    // Keys that were withdrawn must not count for ever; while they cannot be had anew, the old ones do.
    return now() - keysSince > FRESH_MS && mayLookAgain() ? look().catch(() => old) : old
  }

  return async (header, token) => {
    const known = await current()
    try {
      return await known(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayLookAgain()) throw error
      return (await look())(header, token)
    }
  }
}
