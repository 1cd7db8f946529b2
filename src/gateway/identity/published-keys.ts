// The public keys that applications verify our assertions with, as a JSON Web Key Set.
import { createPublicKey } from 'node:crypto'
import { exportJWK } from 'jose'
import type { SigningKeys } from '../../session/keys/signing-keys.ts'

export interface KeySet {
  readonly keys: readonly object[]
}

/** The next key is published a month before it signs, so a set of a minute ago holds whatever signs now. */
const KEPT_MS = 60_000

/** Anybody may ask, as often as they like: the store is asked once in a while only. */
export function createPublishedKeys(keys: SigningKeys, now: () => number): () => Promise<KeySet> {
  let kept: { readonly set: Promise<KeySet>; readonly until: number } | undefined

  async function load(): Promise<KeySet> {
    const jwks = (await keys.all()).map(async ({ id, key }) => ({
      ...(await exportJWK(createPublicKey(key))),
      kid: id,
      alg: 'ES256',
      use: 'sig',
    }))
    return { keys: await Promise.all(jwks) }
  }

  return () => {
    if (kept && now() < kept.until) return kept.set
    const loading = { set: load(), until: now() + KEPT_MS }
    kept = loading
    // A failure is not kept.
    loading.set.catch(() => {
      if (kept === loading) kept = undefined
    })
    return loading.set
  }
}
