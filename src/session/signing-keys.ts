// The keys that sign assertions: created on first use, sealed in the store so that all instances share them, and replaced
// every month. The previous and the next key are published too, so that no application fails at a change.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK } from 'jose'
import type { Entry, Store, StoredEntry } from '../stores/store.ts'
import type { KeyList } from './derived-keys.ts'
import { sealValue, unsealValue } from './sealing.ts'

export interface SigningKey {
  /** The thumbprint of its public key (RFC 7638): it changes only when the key does. */
  readonly id: string
  readonly key: KeyObject
}

export interface SigningKeys {
  current(): Promise<SigningKey>
  /** The result of `current` if it is in memory. */
  latest(): SigningKey | undefined
  /** The previous, current and next key. */
  all(): Promise<SigningKey[]>
  /** Seals all keys with the first secret, so that another one can be removed. */
  reseal(): Promise<void>
  /** Our secrets have changed. */
  use(sealingKeys: KeyList): void
}

const PERIOD_MS = 30 * 24 * 3_600_000

export function createSigningKeys(store: Store, keys: KeyList, now: () => number): SigningKeys {
  let sealingKeys = keys
  const known = new Map<number, Promise<SigningKey>>()
  let latest: { readonly number: number; readonly key: SigningKey } | undefined
  const period = () => Math.floor(now() / PERIOD_MS)

  function keyOf(number: number): Promise<SigningKey> {
    const found = known.get(number)
    if (found) return found
    for (const old of known.keys()) if (old < period() - 1) known.delete(old)
    const loading = readOrMake(number)
    known.set(number, loading)
    loading.catch(() => known.delete(number))
    return loading
  }

  async function readKey(number: number): Promise<SigningKey | undefined> {
    const stored = await store.read(storeKey(number))
    return stored && open(stored)
  }

  async function readOrMake(number: number): Promise<SigningKey> {
    for (;;) {
      const stored = await store.read(storeKey(number))
      const key = stored && (await open(stored))
      if (key) return key
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const fresh = toEntry(storeKey(number), privateKey, (number + 2) * PERIOD_MS, sealingKeys)
      // If several instances try, one creates the key and the others read it. A key that none of our secrets opens is replaced.
      if (stored) await store.replace(stored.key, fresh, stored.version)
      else await store.create(storeKey(number), fresh)
    }
  }

  /** A key that was sealed with a secret other than the first is sealed again. */
  async function open(stored: StoredEntry): Promise<SigningKey | undefined> {
    const { plain, isFirst } = unsealWithAny(sealingKeys, stored)
    if (!plain) return undefined
    const key = createPrivateKey({ key: plain, type: 'pkcs8', format: 'der' })
    if (!isFirst)
      await store.replace(stored.key, toEntry(stored.key, key, stored.expiresAt, sealingKeys), stored.version)
    return { id: await calculateJwkThumbprint(await exportJWK(createPublicKey(key))), key }
  }

  return {
    latest: () => (latest?.number === period() ? latest.key : undefined),
    async current() {
      const number = period()
      const key = await keyOf(number)
      latest = { number, key }
      return key
    },
    use(keys) {
      sealingKeys = keys
    },
    async reseal() {
      await Promise.all([-1, 0, 1].map(offset => readKey(period() + offset)))
    },
    async all() {
      const previous = await readKey(period() - 1)
      const [current, next] = await Promise.all([keyOf(period()), keyOf(period() + 1)])
      return previous ? [previous, current, next] : [current, next]
    },
  }
}

function unsealWithAny(sealingKeys: KeyList, { key, value }: StoredEntry) {
  for (const [n, sealingKey] of sealingKeys.entries()) {
    const plain = unsealValue(sealingKey, value, key)
    if (plain) return { plain, isFirst: n === 0 }
  }
  return { plain: undefined, isFirst: false }
}

function toEntry(storeKey: string, key: KeyObject, expiresAt: number, [sealingKey]: KeyList): Entry {
  return { value: sealValue(sealingKey, key.export({ type: 'pkcs8', format: 'der' }), storeKey), expiresAt, labels: [] }
}

function storeKey(number: number): string {
  return `signing:${number}`
}
