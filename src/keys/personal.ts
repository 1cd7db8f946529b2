// Personal keys, which users create on the account page for their programs. A key is valid while its record and that of its owner
// are in the store; role and groups are the owner's (owners.ts). The key itself is shown once and never stored.
//
//   key    personal-key:<SHA-256 of the key>
//   value  its name, when it was created and last used, and its owner, sealed with the data keys
//   labels personal-keys, personal-keys.<key of the owner's record>
//
// Recently used keys are cached, and valid while the store provably holds the same versions of both records, as with
// sessions: a revoked key is refused immediately here, and elsewhere as soon as a session would be.

import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { DEFAULT_ROLE } from '../config/role-names.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { DataKeyring } from '../session/data-keys.ts'
import { type Identity, type SessionUser, userFields } from '../session/fields.ts'
import { type DataKeys, PERSONAL_KEY_LABEL, SUB_LABEL, type UserId } from '../session/record.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { identifyIn, type SessionDirectory } from '../session/sessions.ts'
import { allEntries, entryPages } from '../stores/pages.ts'
import {
  type Entry,
  type Freshness,
  newFreshness,
  type Store,
  type StoredEntry,
  type StoredValue,
} from '../stores/store.ts'
import { keySha256, newKey } from '../util/key-form.ts'
import { atMost } from '../util/recent.ts'
import { type ConfirmedUser, createKeyOwners, type KeyOwner, type KeyOwners, openOwner, ownerKeyOf } from './owners.ts'

export const MAX_KEYS_PER_USER = 20
export const MAX_KEY_NAME_LENGTH = 60

export interface PersonalKey {
  /** The SHA-256 of the key in hex. */
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Accurate to a few minutes. */
  readonly usedAt?: number
}

/** A program that uses this user's key. */
export interface KeyUser {
  readonly user: SessionUser
  readonly who: Identity
  readonly expiresAt: number
  readonly keyName: string
}

export interface PersonalKeys {
  /** Looks it up by the SHA-256 of the key. Without a promise if it is cached. */
  find(id: string): KeyUser | undefined | Promise<KeyUser | undefined>
  /** Returns the key, which cannot be read again; or why there is none. */
  create(user: ConfirmedUser, request: KeyRequest): Promise<NewKey | KeyProblem>
  /** The user's own keys, newest first. */
  listOf(user: UserId): Promise<PersonalKey[]>
  /** Revokes a key if it belongs to this user. */
  revoke(user: UserId, id: string): Promise<PersonalKey | undefined>
  /** Revokes all keys of the user and returns how many there were. A session of the user can create another until it has ended. */
  endAllOf(user: UserId): Promise<number>
  /** Like `listOf`, by the key of the owner's record. */
  listOfOwner(ownerKey: string): Promise<PersonalKey[]>
  /** The key of the owner's record, found by the key of one of the owner's sessions in the store. */
  ownerOfSession(sessionKey: string): Promise<string | undefined>
  /** Revokes by the key of the owner's record. */
  endAllOfOwner(ownerKey: string): Promise<number>
  /** Revokes the keys of the user with this `sub` at the provider, which may differ from ours. */
  endAllOfSubject(subject: UserId): Promise<number>
  /** Changes the providers and roles. */
  use(directory: SessionDirectory): void
  /** Resolves when every noted use is written. */
  settle(): Promise<void>
}

/** The key that a user asks for. */
export interface KeyRequest {
  readonly name: string
  readonly days: number
}

export interface NewKey extends PersonalKey {
  readonly key: string
}

export type KeyProblem = 'too_many' | 'name_taken'

interface KeyRecord {
  readonly name: string
  readonly createdAt: number
  readonly usedAt?: number
  /** The key of the owner's record, and the id that it had. */
  readonly owner: string
  readonly ownerId: string
}

const recordSchema: z.ZodType<KeyRecord> = z.object({
  name: z.string(),
  createdAt: z.number(),
  usedAt: z.number().exactOptional(),
  owner: z.string(),
  ownerId: z.string(),
})

/** A key that was found, and the versions of the two records that it was found by. */
interface CachedKey {
  readonly caller: KeyUser
  readonly record: KeyRecord
  readonly ownerVersion: number
  readonly ownerProof: Freshness
  version: number
  proof: Freshness
  usedAt: number
}

interface PersonalKeysOptions {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current' | 'latest'>
  readonly owners: Omit<KeyOwners, 'confirm'>
  readonly directory: SessionDirectory
  readonly now: () => number
  readonly report: Report
}

const PREFIX = 'personal-key:'
const DAY_MS = 24 * 3_600_000
const MAX_CACHED_KEYS = 10_000
/** The precision of "last used": a request must not cost a write. */
const USED_STEP_MS = 5 * 60_000
/** A store that cannot be written is not retried at every request. */
const RETRY_MS = 10_000

export function createPersonalKeys(options: PersonalKeysOptions): PersonalKeys {
  const { store, keyring, owners, now, report } = options
  let { directory } = options
  const cache = new LRUCache<string, CachedKey>(atMost(MAX_CACHED_KEYS))

  // Finding a key.

  function getCached(id: string): CachedKey | undefined {
    const cached = cache.get(id)
    if (!cached || cached.caller.expiresAt <= now()) return undefined
    const isHeld = store.isCurrent(recordKeyOf(id), cached.version, cached.proof)
    return isHeld && store.isCurrent(cached.record.owner, cached.ownerVersion, cached.ownerProof) ? cached : undefined
  }

  async function load(id: string): Promise<CachedKey | undefined> {
    const stored = await store.read(recordKeyOf(id))
    const record = stored && (await open(stored))
    const storedOwner = record && (await store.read(record.owner))
    const owner = storedOwner && (await owners.open(storedOwner))
    // The user has been signed out everywhere since then, or their provider is not configured any more.
    if (!owner || owner.id !== record.ownerId || !directory.providers.get(owner.provider)) return undefined
    const { version, expiresAt } = stored
    const caller = { ...toUser(directory, owner), expiresAt, keyName: record.name }
    const found = {
      caller,
      record,
      version,
      proof: newFreshness(),
      ownerVersion: storedOwner.version,
      ownerProof: newFreshness(),
      usedAt: record.usedAt ?? 0,
    }
    cache.set(id, found)
    return found
  }

  async function open(stored: StoredValue): Promise<KeyRecord | undefined> {
    const latest = keyring.latest()
    return (latest && openRecord(stored, latest)) ?? openRecord(stored, await keyring.current())
  }

  function used(id: string, found: CachedKey | undefined): KeyUser | undefined {
    if (found && now() - found.usedAt >= USED_STEP_MS) noteUse(id, found)
    return found?.caller
  }

  // When a key was last used. It is written every few minutes, and no request waits for it.

  const noting = new Map<string, Promise<void>>()
  let isFailing = false

  function noteUse(id: string, found: CachedKey): void {
    if (noting.has(id)) return
    const usedAt = now()
    const noted = saveUse(id, found, usedAt).then(
      () => {
        isFailing = false
        noting.delete(id)
      },
      (error: unknown) => {
        // Once per outage, not per request.
        if (!isFailing) report('key_use_not_saved', { ...errorFields(error), ...userFields(found.caller.user) })
        isFailing = true
        setTimeout(() => noting.delete(id), RETRY_MS).unref()
      },
    )
    noting.set(id, noted)
  }

  async function saveUse(id: string, found: CachedKey, usedAt: number): Promise<void> {
    const stored = await store.read(recordKeyOf(id))
    if (!stored) return
    const entry = await toEntry(id, { ...found.record, usedAt }, stored.expiresAt)
    // Only if it is still there: a revoked key stays revoked.
    const version = await store.replace(stored.key, entry, stored.version)
    found.usedAt = usedAt
    if (version === undefined || stored.version !== found.version) return
    found.version = version
    found.proof = newFreshness()
  }

  async function toEntry(id: string, record: KeyRecord, expiresAt: number): Promise<Entry> {
    const key = recordKeyOf(id)
    const { publicPart } = await keyring.current()
    const labels = [PERSONAL_KEY_LABEL, listLabel(record.owner)]
    return { value: sealValue(publicPart, encodeJson(record), key), expiresAt, labels }
  }

  async function listOf(user: UserId): Promise<PersonalKey[]> {
    return listOfOwner(await owners.keyOf(user))
  }

  async function listOfOwner(ownerKey: string): Promise<PersonalKey[]> {
    const storedOwner = await store.read(ownerKey)
    const owner = storedOwner && (await owners.open(storedOwner))
    if (!owner) return []
    const opened = await Promise.all(
      (await allEntries(store, listLabel(ownerKey))).map(async stored => {
        const record = await open(stored)
        return record?.ownerId === owner.id ? [toKey(stored, record)] : []
      }),
    )
    return opened.flat().sort((one, other) => other.createdAt - one.createdAt)
  }

  return {
    find(id) {
      const cached = getCached(id)
      return cached ? used(id, cached) : load(id).then(found => used(id, found))
    },

    async create(user, { name, days }) {
      const userId = { sub: user.userInfo.sub, provider: user.provider }
      const before = await listOf(userId)
      if (before.length >= MAX_KEYS_PER_USER) return 'too_many'
      if (before.some(known => known.name === name)) return 'name_taken'
      const createdAt = now()
      const expiresAt = createdAt + days * DAY_MS
      const owner = await owners.ensure(user, expiresAt)
      const key = newKey()
      const id = keySha256(key)
      const record = { name, createdAt, owner: owner.key, ownerId: owner.id }
      await store.create(recordKeyOf(id), await toEntry(id, record, expiresAt))
      // Others may have been created at the same time.
      if ((await listOf(userId)).length <= MAX_KEYS_PER_USER) return { key, id, name, createdAt, expiresAt }
      await store.remove(recordKeyOf(id))
      return 'too_many'
    },

    listOf,
    listOfOwner,

    async revoke(user, id) {
      const stored = await store.read(recordKeyOf(id))
      const record = stored && (await open(stored))
      if (!record || record.owner !== (await owners.keyOf(user))) return undefined
      return (await store.remove(stored.key)) ? toKey(stored, record) : undefined
    },

    endAllOf: async user => endAll(store, await owners.keyOf(user)),

    async ownerOfSession(sessionKey) {
      const label = (await store.read(sessionKey))?.labels[SUB_LABEL]
      return label === undefined ? undefined : ownerKeyOf(label)
    },

    endAllOfOwner: ownerKey => endAll(store, ownerKey),

    endAllOfSubject: async subject => endEach(store, await owners.keysOfSubject(subject)),

    use(next) {
      directory = next
      cache.clear()
    },

    async settle() {
      await Promise.all(noting.values())
    },
  }
}

function recordKeyOf(id: string): string {
  return PREFIX + id
}

function listLabel(ownerKey: string): string {
  return `${PERSONAL_KEY_LABEL}.${ownerKey}`
}

function openRecord({ key, value }: StoredValue, keys: DataKeys): KeyRecord | undefined {
  return decodeJson(recordSchema, unsealValue(keys.publicPart, value, key))
}

function toKey({ key, expiresAt }: StoredEntry, { name, createdAt, usedAt }: KeyRecord): PersonalKey {
  const id = key.slice(PREFIX.length)
  return { id, name, createdAt, expiresAt, ...(usedAt === undefined ? {} : { usedAt }) }
}

/** Derived from the roles of the current configuration. */
function toUser(directory: SessionDirectory, owner: KeyOwner): Omit<KeyUser, 'expiresAt' | 'keyName'> {
  const { userInfo, groups, provider, claims } = owner
  const unidentified = { userInfo, groups, userRole: DEFAULT_ROLE, ...(provider === undefined ? {} : { provider }) }
  const { session: user, who } = identifyIn(directory, unidentified, () => claims)
  return { user, who: { ...who, keyKind: 'personal' } }
}

// Revokes all keys of a user.

async function endEach(store: Store, ownerKeys: readonly string[]): Promise<number> {
  const counts = await mapInGroups(ownerKeys, key => endAll(store, key))
  return counts.reduce((sum, count) => sum + count, 0)
}

const GROUP_SIZE = 100

/** Where usernames are not unique, there can be more owners than a store should be asked about at the same time. */
async function mapInGroups<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let n = 0; n < items.length; n += GROUP_SIZE)
    results.push(...(await Promise.all(items.slice(n, n + GROUP_SIZE).map(work))))
  return results
}

/** Removes the owner's record first: this revokes all keys in one step, even if removing their own records fails. */
async function endAll(store: Store, ownerKey: string): Promise<number> {
  const keys = await allEntries(store, listLabel(ownerKey))
  const hadOwner = await store.remove(ownerKey)
  const removed = await Promise.all(keys.map(({ key }) => store.remove(key)))
  return hadOwner ? removed.filter(Boolean).length : 0
}

// The keys of all users, for operators: listed and revoked one by one, by user or by age.

export interface ListedKey extends PersonalKey {
  /** The owner's name. */
  readonly user: string
  readonly provider?: string
}

export interface KeyListing {
  /** The valid keys of one username or of all, in pages without an order. An empty page need not be the last one. */
  list(query: { username?: string | undefined; after?: string | undefined; limit: number }): Promise<KeyPage>
  /** Revokes a key. `undefined` if there is no valid key with this id. */
  revoke(id: string): Promise<ListedKey | undefined>
  /** Revokes the keys of all users of this name, at any provider, and returns how many there were. */
  revokeOf(username: string): Promise<number>
  /** Revokes all keys that were created before this moment, and yields each as soon as it is revoked. */
  revokeBefore(time: number): AsyncGenerator<ListedKey | typeof UNREADABLE>
}

export interface KeyPage {
  readonly keys: readonly ListedKey[]
  /** How many further keys were created under a secret that is gone: their owner and age are unknown. 0 for one username. */
  readonly unreadable: number
  /** The `after` of the next page; absent on the last one. */
  readonly next?: string
}

/** A key that was created under a secret that is gone. */
export const UNREADABLE = Symbol('unreadable')

const ID = /^[\da-f]{64}$/

interface KeyListingOptions {
  readonly store: Store
  /** Several after a start with another secret. */
  readonly allKeys: () => Promise<readonly DataKeys[]>
}

export function createKeyListing({ store, allKeys }: KeyListingOptions): KeyListing {
  type KeyResult = ListedKey | typeof UNREADABLE

  /** Opens entries, leaving out keys that were revoked with their owner. */
  async function openEach(entries: readonly StoredEntry[]): Promise<KeyResult[]> {
    const sets = await allKeys()
    const owners = new Map<string, Promise<StoredEntry | undefined>>()
    const readOwner = (key: string) => {
      const read = owners.get(key) ?? store.read(key)
      owners.set(key, read)
      return read
    }

    async function open(entry: StoredEntry): Promise<KeyResult[]> {
      for (const keys of sets) {
        const record = openRecord(entry, keys)
        if (!record) continue
        const storedOwner = await readOwner(record.owner)
        const owner = storedOwner && openOwner(storedOwner, keys)
        if (owner?.id !== record.ownerId) return []
        const { userInfo, provider } = owner
        return [{ ...toKey(entry, record), user: userInfo.username, ...(provider === undefined ? {} : { provider }) }]
      }
      return [UNREADABLE]
    }

    return (await Promise.all(entries.map(open))).flat()
  }

  async function ownersOf(username: string): Promise<string[]> {
    const ofEach = (await allKeys()).map(keys => {
      const keyring = { current: async () => keys, latest: () => keys }
      return createKeyOwners({ store, keyring }).keysOfUsername(username)
    })
    return (await Promise.all(ofEach)).flat()
  }

  async function listOf(
    username: string,
    { after = '', limit }: { after?: string | undefined; limit: number },
  ): Promise<KeyPage> {
    const owners = await ownersOf(username)
    const entries = await mapInGroups(owners, owner => allEntries(store, listLabel(owner)))
    const keys = (await openEach(entries.flat()))
      .filter(key => key !== UNREADABLE)
      .filter(({ id }) => recordKeyOf(id) > after)
      .sort((one, other) => (one.id < other.id ? -1 : 1))
    const last = keys[limit - 1]
    const next = last && keys.length > limit ? { next: recordKeyOf(last.id) } : {}
    return { keys: keys.slice(0, limit), unreadable: 0, ...next }
  }

  return {
    async list({ username, ...query }) {
      if (username !== undefined) return listOf(username, query)
      const { entries, next } = await store.list({ label: PERSONAL_KEY_LABEL, ...query })
      const found = await openEach(entries)
      const keys = found.filter(key => key !== UNREADABLE)
      return { keys, unreadable: found.length - keys.length, ...(next === undefined ? {} : { next }) }
    },

    async revoke(id) {
      const stored = ID.test(id) ? await store.read(recordKeyOf(id)) : undefined
      const [key] = stored ? await openEach([stored]) : []
      if (!stored || key === undefined || key === UNREADABLE) return undefined
      return (await store.remove(stored.key)) ? key : undefined
    },

    revokeOf: async username => endEach(store, await ownersOf(username)),

    async *revokeBefore(time) {
      for await (const entries of entryPages(store, PERSONAL_KEY_LABEL)) {
        const found = (await openEach(entries)).filter(key => key === UNREADABLE || key.createdAt < time)
        const remove = async (key: KeyResult) => key === UNREADABLE || store.remove(recordKeyOf(key.id))
        const removed = await Promise.allSettled(found.map(remove))
        for (const [n, key] of found.entries()) {
          const result = removed[n]
          if (result?.status === 'fulfilled' && result.value) yield key
        }
        // Thrown after the revoked keys were yielded, because the caller reports them.
        for (const result of removed) if (result.status === 'rejected') throw result.reason
      }
    },
  }
}
