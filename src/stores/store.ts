// The contract of every store. Absent is a value, broken is an error: a store that cannot answer throws
// `MenshenError('store_unavailable')`, and nothing else.

import { randomInt } from 'node:crypto'
import type { Trail } from './trail.ts'

export interface Entry {
  /** Opaque to the store. */
  readonly value: Uint8Array
  /** Milliseconds since the epoch. From that moment on the entry is absent, whether or not it has been swept away. */
  readonly expiresAt: number
  /** Names that the entry can be listed by. */
  readonly labels: readonly string[]
  /** Whole milliseconds since the epoch. Entries that have it are counted, and listed newest first. */
  readonly since?: number
}

/** An entry as it was read. No other content of this key has ever had the same `version`. */
export interface StoredEntry extends Entry {
  readonly key: string
  readonly version: number
}

/** An entry as it was read, without its labels. */
export interface StoredValue extends Pick<StoredEntry, 'key' | 'version' | 'value' | 'expiresAt'> {
  /** Until when the store knows this version to be the current one. */
  readonly freshness?: Freshness
}

/** What a store notes about a version that it was asked about. It is kept with the value that was read. */
export interface Freshness {
  /** While this is the store's own number, the version is current until `validUntil`. */
  validIn: number
  validUntil: number
}

export function newFreshness(): Freshness {
  return { validIn: 0, validUntil: 0 }
}

export interface Page {
  readonly entries: readonly StoredEntry[]
  /** The `after` or `before` of the next page; absent on the last one. */
  readonly next?: string
}

export interface ListQuery {
  readonly label: string
  /** Only keys after this one. */
  readonly after?: string | undefined
  readonly limit: number
}

export interface NewestQuery {
  /** The `next` of an earlier page. Any other text is ignored. */
  readonly before?: string | undefined
  readonly limit: number
}

export interface Store {
  readonly trail: Trail
  /**
   * Creates an entry, and returns its version once it would survive `kill -9`. `undefined`, and nothing changes, if the key
   * exists.
   */
  create(key: string, entry: Entry): Promise<number | undefined>
  read(key: string): Promise<StoredEntry | undefined>
  /**
   * Like `read`, but includes every change that was made before the call, also by other processes. `read` may be a moment behind
   * them.
   */
  readLatest(key: string): Promise<StoredEntry | undefined>
  /**
   * Like `read`, but synchronous; absent where that is impossible. Reads the state at the beginning of the turn, like `isCurrent`. The
   * bytes of the value are valid until the store is used again.
   */
  readSync?(key: string): StoredValue | undefined
  /**
   * A request has just been received: one snapshot of the store may serve all requests of this event turn. Not for timers: the
   * requests that are received after a timer may have arrived after its snapshot.
   */
  beginTurn?(): void
  /**
   * Whether the key provably still has this version, without waiting: the cheapest proof that something read earlier is
   * still valid. False proves nothing; read again. `freshness` is always the same object for this version.
   */
  isCurrent(key: string, version: number, freshness?: Freshness): boolean
  /**
   * Replaces the entry that has this version, and returns the new version. `undefined`, and nothing changes, if that entry is
   * gone or was changed.
   */
  replace(key: string, entry: Entry, version: number): Promise<number | undefined>
  /** Removes the entry, and returns whether there was one. Once it resolves the entry is gone, even after `kill -9`. */
  remove(key: string): Promise<boolean>
  /** Reads and removes in one step: only one of several parallel callers gets the entry. */
  take(key: string): Promise<Entry | undefined>
  /** One page of the entries with a label, in the order of their keys. A page can be empty without being the last. */
  list(query: ListQuery): Promise<Page>
  /** One page of the entries with `since`, the newest first. A page can be empty without being the last. */
  newest(query: NewestQuery): Promise<Page>
  /** How many entries have `since`. Entries that have just expired may be counted. */
  count(): Promise<number>
  /** Resolves if the store can serve; throws if not. */
  ready(): Promise<void>
  close(): Promise<void>
}

// The versions of a key grow by random steps from a random first one: neither a key that was removed and created again, nor one
// whose last writes were lost in a failover, gets a version that it had before with other content. All of them are exact as
// numbers; after millions of writes they begin again at a random one.

const MAX_FIRST_VERSION = 2 ** 47
const MAX_VERSION_STEP = 2 ** 30

export function firstVersion(): number {
  return randomInt(MAX_FIRST_VERSION)
}

/** The version of an entry that replaces `old`. */
export function nextVersion(old: { readonly version: number } | undefined): number {
  const next = (old?.version ?? firstVersion()) + randomInt(1, MAX_VERSION_STEP)
  return Number.isSafeInteger(next) ? next : firstVersion()
}
