// The keys that sign assertions: created on first use, sealed in the store with the data keys so that all instances share them, and
// replaced every month. The previous and the next key are published too, so that no application fails at a change.
//
// Each set of data keys has its own records: an instance whose secrets open other data keys, as after a start with a wrong secret,
// neither reads nor replaces the keys of the others.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK } from 'jose'
import type { Store, StoredEntry } from '../stores/store.ts'
import { type DataKeyring, idOfDataKeys } from './data-keys.ts'
import type { DataKeys } from './record.ts'
import { sealValue, unsealValue } from './sealing.ts'

export interface SigningKey {
  /** The thumbprint of its public key (RFC 7638): it changes only when the key does. */
  readonly id: string
  readonly key: KeyObject
}

export interface SigningKeys {
  current(): Promise<SigningKey>
  /** The last result of `current`, unless its month is over. Compared with the store in the background, once a minute. */
  latest(): SigningKey | undefined
  /** The previous, current and next key. */
  all(): Promise<SigningKey[]>
}

interface StoredKey extends SigningKey {
  readonly version: number
}

const PERIOD_MS = 30 * 24 * 3_600_000
const CHECK_EVERY_MS = 60_000

export function createSigningKeys(store: Store, keyring: Pick<DataKeyring, 'current'>, now: () => number): SigningKeys {
  /** Keyed by record. */
  const known = new Map<string, StoredKey>()
  const loading = new Map<string, Promise<SigningKey>>()
  let latest: { readonly number: number; readonly key: SigningKey } | undefined
  let checkedAt = Number.NEGATIVE_INFINITY
  const period = () => Math.floor(now() / PERIOD_MS)

  async function keyOf(number: number): Promise<SigningKey> {
    const dataKeys = await keyring.current()
    const name = recordName(number, dataKeys)
    const found = known.get(name)
    if (found && store.isCurrent(name, found.version)) return found
    const before = loading.get(name)
    if (before) return before
    const key = readOrMake(name, number, dataKeys).finally(() => loading.delete(name))
    loading.set(name, key)
    return key
  }

  async function readOrMake(name: string, number: number, dataKeys: DataKeys): Promise<SigningKey> {
    for (;;) {
      const stored = await store.read(name)
      const key = stored && (await open(stored, dataKeys))
      if (key) {
        keep(name, key)
        return key
      }
      // A store that was emptied gets the key that this process has.
      const made = known.get(name)?.key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      const value = sealValue(dataKeys.publicPart, made.export({ type: 'pkcs8', format: 'der' }), name)
      const entry = { value, expiresAt: (number + 2) * PERIOD_MS, labels: [] }
      // If several instances try, one creates the key and the others read it. A damaged key is replaced.
      if (stored) await store.replace(name, entry, stored.version)
      else await store.create(name, entry)
    }
  }

  function keep(name: string, key: StoredKey): void {
    known.delete(name)
    known.set(name, key)
    for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
  }

  async function open(stored: StoredEntry, { publicPart }: DataKeys): Promise<StoredKey | undefined> {
    const { key: name, version } = stored
    const found = known.get(name)
    if (found?.version === version) return found
    const plain = unsealValue(publicPart, stored.value, name)
    if (!plain) return undefined
    const key = createPrivateKey({ key: plain, type: 'pkcs8', format: 'der' })
    return { id: await calculateJwkThumbprint(await exportJWK(createPublicKey(key))), key, version }
  }

  async function readPrevious(): Promise<SigningKey | undefined> {
    const dataKeys = await keyring.current()
    const stored = await store.read(recordName(period() - 1, dataKeys))
    return stored && open(stored, dataKeys)
  }

  async function current(): Promise<SigningKey> {
    const number = period()
    checkedAt = now()
    const key = await keyOf(number)
    latest = { number, key }
    return key
  }

  return {
    current,
    latest() {
      if (latest?.number !== period()) return undefined
      // Without waiting: assertions are signed while the store is unavailable, too.
      if (now() - checkedAt >= CHECK_EVERY_MS) current().catch(() => {})
      return latest.key
    },
    async all() {
      const previous = await readPrevious()
      const [key, next] = await Promise.all([current(), keyOf(period() + 1)])
      return previous ? [previous, key, next] : [key, next]
    },
  }
}

/** The current and the next key, also while the month or the data keys change. */
const MAX_KNOWN = 4

function recordName(number: number, dataKeys: DataKeys): string {
  return `signing:${number}:${idOfDataKeys(dataKeys)}`
}
