// The keys that sign assertions: made when first needed, sealed in the store so that all instances share them, and
// replaced every month. The one before and the one to come are published too, so that a change breaks nobody.
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Entry, Store } from '../stores/store.ts'
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
  // A key that another client secret replaces gets another name: whoever kept the old one has to notice.
  const family = createHmac('sha256', sealingKey).update('key name').digest('hex').slice(0, 8)

  function keyOf(number: number): Promise<SigningKey> {
    const found = known.get(number)
    if (found) return found
    for (const old of known.keys()) if (old < period() - 1) known.delete(old)
    const loading = readOrMake(number)
    known.set(number, loading)
    loading.catch(() => known.delete(number))
    return loading
  }

  async function readOrMake(number: number): Promise<SigningKey> {
    for (;;) {
      const { stored, key } = await read(number)
      if (key) return key
      // Of all instances that try, one makes it and the others read it. What another client secret sealed is replaced.
      if (stored) await store.replace(stored.key, freshEntry(number), stored.version)
      else await store.create(storeKey(number), freshEntry(number))
    }
  }

  async function read(number: number) {
    const stored = await store.read(storeKey(number))
    const plain = stored && unseal(sealingKey, stored.value, stored.key)
    const key = plain && {
      id: `${family}-${number}`,
      key: createPrivateKey({ key: plain, type: 'pkcs8', format: 'der' }),
    }
    return { stored, key }
  }

  function freshEntry(number: number): Entry {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const value = seal(sealingKey, privateKey.export({ type: 'pkcs8', format: 'der' }), storeKey(number))
    return { value, expiresAt: (number + 2) * PERIOD_MS, labels: [] }
  }

  return {
    current: () => keyOf(period()),
    async all() {
      const { key: previous } = await read(period() - 1)
      const [current, next] = await Promise.all([keyOf(period()), keyOf(period() + 1)])
      return previous ? [previous, current, next] : [current, next]
    },
  }
}

function storeKey(number: number): string {
  return `signing:${number}`
}
