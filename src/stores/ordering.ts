// Orders that several stores need: by time and key, by a running number, and a sorted list in memory.

import type { Page, StoredEntry } from './store.ts'

export interface SinceKey {
  readonly since: number
  readonly key: string
}

/** Keys without an entry that are skipped for one page. Then the page is short instead of late. */
const MAX_SKIPPED = 1000

/** One page of keys that come newest first. `living` reads the entry of a key. */
export function newestPage(
  keys: Iterable<SinceKey>,
  read: (key: string) => StoredEntry | undefined,
  limit: number,
): Page {
  const entries: StoredEntry[] = []
  let last: SinceKey | undefined
  let skipped = 0
  for (const sinceKey of keys) {
    const stored = read(sinceKey.key)
    if (stored?.since !== sinceKey.since) {
      if (++skipped === MAX_SKIPPED) return { entries, next: sinceText(sinceKey) }
      continue
    }
    if (last && entries.length === limit) return { entries, next: sinceText(last) }
    entries.push(stored)
    last = sinceKey
  }
  return { entries }
}

export function sinceText({ since, key }: SinceKey): string {
  return `${since}:${key}`
}

/** `undefined` if the text has another form: it may come from the query of a URL, and the length of a key is limited. */
export function readSinceText(text = ''): SinceKey | undefined {
  const [, since, key] = /^(\d{1,16}):(.{1,500})$/s.exec(text) ?? []
  return key === undefined ? undefined : { since: Number(since), key }
}

// Positions in a trail that numbers its events: numbers as texts of equal length.

const DIGITS = 16

export function positionOf(number: number): string {
  return String(number).padStart(DIGITS, '0')
}

/** `undefined` if it is not a position. */
export function numberOf(position: string | undefined): number | undefined {
  return position !== undefined && /^\d{16}$/.test(position) ? Number(position) : undefined
}

// A list that stays sorted while items are added and removed. It consists of chunks: a change moves at most the 512 items of
// one chunk, with a thousand items as with a million. A sorted array would move half of them, and a Map has no order.

type Compare<T> = (one: T, other: T) => number

const MAX_CHUNK_SIZE = 512

/** A class, because there is one list per label: closures would take several times the memory. */
export class SortedList<T> {
  readonly #compare: Compare<T>
  readonly #chunks: T[][] = []
  #size = 0

  constructor(compare: Compare<T>) {
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  /** Does nothing if an equal item is in the list. */
  add(item: T): void {
    const { at, chunk, index } = this.#locate(item)
    const found = chunk?.[index]
    if (found !== undefined && this.#compare(found, item) === 0) return
    this.#size++
    if (!chunk) {
      this.#chunks.push([item])
      return
    }
    chunk.splice(index, 0, item)
    if (chunk.length > MAX_CHUNK_SIZE) this.#chunks.splice(at + 1, 0, chunk.splice(MAX_CHUNK_SIZE / 2))
  }

  remove(item: T): void {
    const { at, chunk, index } = this.#locate(item)
    const found = chunk?.[index]
    if (!chunk || found === undefined || this.#compare(found, item) !== 0) return
    this.#size--
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
  }

  /** The items after `after`, or all, in order. */
  *ascending(after?: T): Generator<T> {
    const from = after === undefined ? { at: 0, index: 0 } : this.#locate(after)
    for (let { at, index } = from; at < this.#chunks.length; at++, index = 0)
      for (const item of this.#chunks[at]?.slice(index) ?? [])
        if (after === undefined || this.#compare(item, after) > 0) yield item
  }

  /** The items before `before`, or all, in reverse order. */
  *descending(before?: T): Generator<T> {
    const from = before === undefined ? { at: this.#chunks.length, index: 0 } : this.#locate(before)
    yield* (this.#chunks[from.at]?.slice(0, from.index) ?? []).reverse()
    for (let at = from.at - 1; at >= 0; at--) yield* this.#chunks[at]?.toReversed() ?? []
  }

  clear(): void {
    this.#chunks.length = 0
    this.#size = 0
  }

  /** Where the item is or would be: the first chunk that does not end before it, or the last chunk. */
  #locate(item: T): { at: number; chunk: T[] | undefined; index: number } {
    const isBefore = (other: T | undefined) => other !== undefined && this.#compare(other, item) < 0
    const at = Math.min(
      firstNot(this.#chunks, chunk => isBefore(chunk?.at(-1))),
      Math.max(this.#chunks.length - 1, 0),
    )
    const chunk = this.#chunks[at]
    return { at, chunk, index: firstNot(chunk ?? [], isBefore) }
  }
}

/** Binary search: the index of the first item that is not before, or the length. */
function firstNot<T>(sorted: readonly T[], isBefore: (item: T | undefined) => boolean): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (isBefore(sorted[middle])) from = middle + 1
    else to = middle
  }
  return from
}
