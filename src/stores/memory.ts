// A store in the memory of one process: for development, tests, and a single process whose sessions may end with it.

import { newestPage, numberOf, positionOf, readSinceText, type SinceKey, SortedList } from './ordering.ts'
import { type Entry, nextVersion, type Page, type Store, type StoredEntry } from './store.ts'
import {
  type Candidate,
  type KindCount,
  type PositionedEvent,
  pageOf,
  surplusOf,
  type Trail,
  type TrailEvent,
} from './trail.ts'

/** Each write checks this many entries for expiry: more than it adds, so that expired entries do not accumulate. */
const SWEPT_PER_WRITE = 3

export function createMemoryStore({ now }: { now: () => number }): Store {
  const entries = createEntries(now)
  const { getUnexpired } = entries
  const trail = createMemoryTrail()

  function readSync(key: string): StoredEntry | undefined {
    const stored = getUnexpired(key)
    return stored && copyEntry(stored)
  }

  return {
    trail,

    async create(key, entry) {
      if (getUnexpired(key)) return undefined
      return entries.put(key, entry, nextVersion(entries.find(key)))
    },

    async read(key) {
      return readSync(key)
    },

    async readLatest(key) {
      return readSync(key)
    },

    readSync,

    isCurrent(key, version) {
      return getUnexpired(key)?.version === version
    },

    async replace(key, entry, version) {
      const old = getUnexpired(key)
      return old?.version === version ? entries.put(key, entry, nextVersion(old)) : undefined
    },

    async remove(key) {
      return entries.take(key) !== undefined
    },

    async take(key) {
      return entries.take(key)
    },

    async list({ label, after, limit }): Promise<Page> {
      const page: StoredEntry[] = []
      for (const key of entries.keysWith(label, after)) {
        const stored = getUnexpired(key)
        if (!stored) continue
        if (page.length === limit) return { entries: page, next: page.at(-1)?.key ?? key }
        page.push(copyEntry(stored))
      }
      return { entries: page }
    },

    async newest({ before, limit }) {
      const page = newestPage(entries.newestFirst(readSinceText(before)), getUnexpired, limit)
      return { ...page, entries: page.entries.map(copyEntry) }
    },

    async count() {
      return entries.countSince()
    },

    async ready() {},

    async close() {
      entries.clear()
      trail.clear()
    },
  }
}

/** The entries and their labels. Expired entries are removed step by step. */
function createEntries(now: () => number) {
  const entries = new Map<string, StoredEntry>()
  const labels = createLabels()
  const bySince = new SortedList(compareSince)
  let sweeping = entries.values()

  function getUnexpired(key: string): StoredEntry | undefined {
    const stored = entries.get(key)
    return stored && stored.expiresAt > now() ? stored : undefined
  }

  function drop(stored: StoredEntry | undefined): void {
    if (!stored) return
    entries.delete(stored.key)
    labels.remove(stored)
    if (hasSince(stored)) bySince.remove(stored)
  }

  function sweep(): void {
    for (let looked = 0; looked < SWEPT_PER_WRITE; looked++) {
      const { value: stored, done } = sweeping.next()
      if (done) {
        sweeping = entries.values()
        return
      }
      if (stored.expiresAt <= now()) drop(stored)
    }
  }

  return {
    getUnexpired,
    /** Returns expired entries, too. */
    find: (key: string) => entries.get(key),
    keysWith: labels.keysOf,
    newestFirst: (before?: SinceKey) => bySince.descending(before),
    countSince: () => bySince.size,

    put(key: string, entry: Entry, version: number): number {
      drop(entries.get(key))
      const { value, expiresAt, since } = entry
      const times = since === undefined ? { expiresAt } : { expiresAt, since }
      const stored: StoredEntry = { key, value: copy(value), ...times, labels: [...entry.labels], version }
      entries.set(key, stored)
      labels.add(stored)
      if (hasSince(stored)) bySince.add({ since: stored.since, key })
      sweep()
      return version
    },

    take(key: string): StoredEntry | undefined {
      const stored = getUnexpired(key)
      drop(stored)
      return stored
    },

    clear(): void {
      entries.clear()
      labels.clear()
      bySince.clear()
    },
  }
}

/** The keys of each label. */
function createLabels() {
  const keysByLabel = new Map<string, SortedList<string>>()
  return {
    keysOf: (label: string, after?: string): Iterable<string> => keysByLabel.get(label)?.ascending(after) ?? [],

    add({ key, labels }: StoredEntry): void {
      for (const label of labels) {
        const keys = keysByLabel.get(label) ?? new SortedList(compareKeys)
        keys.add(key)
        keysByLabel.set(label, keys)
      }
    },

    remove({ key, labels }: StoredEntry): void {
      for (const label of labels) {
        const keys = keysByLabel.get(label)
        keys?.remove(key)
        if (keys?.size === 0) keysByLabel.delete(label)
      }
    },

    clear: () => keysByLabel.clear(),
  }
}

function compareKeys(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

function compareSince(one: SinceKey, other: SinceKey): number {
  return one.since - other.since || compareKeys(one.key, other.key)
}

function hasSince(stored: StoredEntry): stored is StoredEntry & { since: number } {
  return stored.since !== undefined
}

function copyEntry(stored: StoredEntry): StoredEntry {
  return { ...stored, value: copy(stored.value) }
}

/** A copy, so that neither side sees changes by the other. */
function copy(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

// The trail of the memory store.

type NumberedEvent = TrailEvent & { readonly number: number }

export function createMemoryTrail(): Trail & { clear(): void } {
  /** The oldest first. */
  let events: NumberedEvent[] = []
  let last = 0

  function trim(keep: number, added: number): void {
    if (events.length <= keep) return
    const kinds = new Map<string, KindCount>()
    for (const { kind = '', number } of events)
      kinds.set(kind, { count: (kinds.get(kind)?.count ?? 0) + 1, last: number })
    const surplus = surplusOf(kinds, keep, added)
    events = events.filter(({ kind = '' }) => {
      const left = surplus.get(kind) ?? 0
      surplus.set(kind, left - 1)
      return left <= 0
    })
  }

  return {
    async append(added, keep) {
      for (const event of added) events.push({ ...event, ...copyOf(event), number: ++last })
      trim(keep, added.length)
    },

    async read(query) {
      const { before, after } = query
      const found =
        after === undefined
          ? events.filter(({ number }) => number < (numberOf(before) ?? Number.POSITIVE_INFINITY)).reverse()
          : events.filter(({ number }) => number > (numberOf(after) ?? -1))
      const page = pageOf(found.map(candidate), query)
      return { ...page, events: page.events.map(event => ({ ...event, ...copyOf(event) })) }
    },

    clear() {
      events = []
    },
  }
}

function candidate({ number, value, tags }: NumberedEvent): Candidate & { readonly event: PositionedEvent } {
  const position = positionOf(number)
  return { position, event: { position, value, tags } }
}

/** A copy, so that neither side sees changes by the other. */
function copyOf({ value, tags }: TrailEvent): TrailEvent {
  return { value: new Uint8Array(value), tags: [...tags] }
}
