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

/** An entry as it was read. `version` is a number that no other content of this key has ever had. */
export interface Stored extends Entry {
  readonly key: string
  readonly version: number
}

/** An entry as it was read, without what it is listed by. */
export type StoredValue = Pick<Stored, 'key' | 'version' | 'value' | 'expiresAt'>

export interface Page {
  readonly entries: readonly Stored[]
  /** What to give as `after`, or as `before`, for the next page; absent on the last one. */
  readonly next?: string
}

export interface ListQuery {
  readonly label: string
  /** Only keys behind this one. */
  readonly after?: string
  readonly limit: number
}

export interface NewestQuery {
  /** A `next` of an earlier page. Any other text counts as none. */
  readonly before?: string
  readonly limit: number
}

export interface Store {
  readonly trail: Trail
  /**
   * Keeps a new entry, and gives its version once it would survive `kill -9`. `undefined`, and nothing changes, if the key is
   * taken.
   */
  create(key: string, entry: Entry): Promise<number | undefined>
  read(key: string): Promise<Stored | undefined>
  /** The same without waiting; absent where that cannot be. What counts is when the turn began, as for `holds`. */
  readSync?(key: string): StoredValue | undefined
  /**
   * A request has just been heard: until the event turn is over, one look may serve all that are. Not for timers, after which
   * requests are heard that arrived later than the look.
   */
  beginTurn?(): void
  /**
   * Whether the key provably still has this very version, without waiting: the cheapest proof that something read earlier
   * still counts. False proves nothing; read again.
   */
  holds(key: string, version: number): boolean
  /**
   * Puts a new entry in the place of the one that was read, and gives its version. `undefined`, and nothing changes, if that
   * one is gone or changed.
   */
  replace(key: string, entry: Entry, version: number): Promise<number | undefined>
  /** Whether there was something to remove. After it resolves nobody reads the entry again, not even after `kill -9`. */
  remove(key: string): Promise<boolean>
  /** Reads and removes in one step: of parallel callers, one gets the entry. */
  take(key: string): Promise<Entry | undefined>
  /** One page of the living entries with a label, in the order of their keys. It can be empty and not the last. */
  list(query: ListQuery): Promise<Page>
  /** One page of the living entries with `since`, the newest first. It can be empty and not the last. */
  newest(query: NewestQuery): Promise<Page>
  /** How many living entries have `since`. What expired a moment ago may still be among them. */
  count(): Promise<number>
  /** Resolves if the store can serve; throws if not. */
  ready(): Promise<void>
  close(): Promise<void>
}

// The versions of a key count up by one. Where those of a new key begin is left to chance, so that one that was removed and
// created anew does not meet a version that it had before.

const BEGINNINGS = 2 ** 47

export function firstVersion(): number {
  return randomInt(BEGINNINGS)
}

/** Of what is written in the place of `old`. */
export function nextVersion(old: { readonly version: number } | undefined): number {
  return (old?.version ?? firstVersion()) + 1
}
