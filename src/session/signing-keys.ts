// The keys that sign assertions: made when first needed, sealed in the store so that all instances share them, and
// replaced every month. The one before and the one to come are published too, so that a change breaks nobody.
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { MenshenError } from '../errors.ts'
import type { Store } from '../stores/store.ts'
import { seal, unseal } from './sealing.ts'

export interface SigningKey {
  readonly id: string
  readonly key: KeyObject
}

export interface SigningKeys {
  current(): Promise<SigningKey>
  /** Everything that a signature of today, yesterday or tomorrow may need. */
  all(): Promise<SigningKey[]>
}

const PERIOD_MS = 30 * 24 * 3_600_000

export function createSigningKeys(store: Store, sealingKey: Uint8Array, now: () => number): SigningKeys {
  const known = new Map<number, Promise<SigningKey>>()
  const period = () => Math.floor(now() / PERIOD_MS)

  function keyOf(number: number): Promise<SigningKey> {
    const found = known.get(number)
    if (found) return found
    for (const old of known.keys()) if (old < period() - 1) known.delete(old)
    const loading = load(number)
    known.set(number, loading)
    loading.catch(() => known.delete(number))
    return loading
  }

  async function load(number: number): Promise<SigningKey> {
    const place = `signing:${number}`
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const fresh = privateKey.export({ type: 'pkcs8', format: 'der' })
    // Of all instances that try, one creates it and the others read it.
    await store.create(place, {
      value: seal(sealingKey, fresh, place),
      expiresAt: (number + 2) * PERIOD_MS,
      labels: [],
    })
    const stored = await store.read(place)
    const plain = stored && unseal(sealingKey, stored.value, place)
    if (!plain) throw new MenshenError('store_unavailable', 'the signing key in the store cannot be opened')
    return { id: String(number), key: createPrivateKey({ key: plain, type: 'pkcs8', format: 'der' }) }
  }

  return {
    current: () => keyOf(period()),
    all: () => Promise.all([period() - 1, period(), period() + 1].map(keyOf)),
  }
}
