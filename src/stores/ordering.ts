// Orders that several stores need: by time and key, by a running number, and a sorted list in memory.

import type { Page, Stored } from './store.ts'

export interface SinceKey {
  readonly since: number
  readonly key: string
}

/** A page is short rather than late: so many that are gone are passed over for it. */
const MOST_PASSED_OVER = 1000

/** One page of what comes newest first, `living` giving what a key has. */
export function newestPage(
  places: Iterable<SinceKey>,
  living: (key: string) => Stored | undefined,
  limit: number,
): Page {
  const entries: Stored[] = []
  let last: SinceKey | undefined
  let passedOver = 0
  for (const place of places) {
    const stored = living(place.key)
    if (stored?.since !== place.since) {
      if (++passedOver === MOST_PASSED_OVER) return { entries, next: sinceText(place) }
      continue
    }
    if (last && entries.length === limit) return { entries, next: sinceText(last) }
    entries.push(stored)
    last = place
  }
  return { entries }
}

export function sinceText({ since, key }: SinceKey): string {
  return `${since}:${key}`
}

/** `undefined` if it is no such text: it may come from an address, and a key has its bounds. */
export function readSinceText(text = ''): SinceKey | undefined {
  const [, since, key] = /^(\d{1,16}):(.{1,500})$/s.exec(text) ?? []
  return key === undefined ? undefined : { since: Number(since), key }
}

// Positions in a trail that counts its events: numbers, as texts of one length.

const DIGITS = 16

export function positionOf(number: number): string {
  return String(number).padStart(DIGITS, '0')
}

/** `undefined` if it is no position. */
export function numberOf(position: string | undefined): number | undefined {
  return position !== undefined && /^\d{16}$/.test(position) ? Number(position) : undefined
}

// A list that stays sorted while items come and go. It is kept in chunks: to add or remove one moves its neighbours of the
// same chunk, whether there are a thousand items or a million.

type Compare<T> = (one: T, other: T) => number

const LARGEST_CHUNK = 512

/** A class, because there is one for each label: closures would take several times the memory. */
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

  /** An item that is there already stays as it is. */
  add(item: T): void {
    const { at, chunk, index } = this.#place(item)
    const found = chunk?.[index]
    if (found !== undefined && this.#compare(found, item) === 0) return
    this.#size++
    if (!chunk) {
      this.#chunks.push([item])
      return
    }
    chunk.splice(index, 0, item)
    if (chunk.length > LARGEST_CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(LARGEST_CHUNK / 2))
  }

  remove(item: T): void {
    const { at, chunk, index } = this.#place(item)
    const found = chunk?.[index]
    if (!chunk || found === undefined || this.#compare(found, item) !== 0) return
    this.#size--
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
  }

  /** Those behind `after`, or all, in their order. */
  *ascending(after?: T): Generator<T> {
    const from = after === undefined ? { at: 0, index: 0 } : this.#place(after)
    for (let { at, index } = from; at < this.#chunks.length; at++, index = 0)
      for (const item of this.#chunks[at]?.slice(index) ?? [])
        if (after === undefined || this.#compare(item, after) > 0) yield item
  }

  /** Those before `before`, or all, the last one first. */
  *descending(before?: T): Generator<T> {
    const from = before === undefined ? { at: this.#chunks.length, index: 0 } : this.#place(before)
    yield* (this.#chunks[from.at]?.slice(0, from.index) ?? []).reverse()
    for (let at = from.at - 1; at >= 0; at--) yield* this.#chunks[at]?.toReversed() ?? []
  }

  clear(): void {
    this.#chunks.length = 0
    this.#size = 0
  }

  /** Where it is or would be: the first chunk that does not end before it, and the last one for what is behind all. */
  #place(item: T): { at: number; chunk: T[] | undefined; index: number } {
    const isBefore = (other: T | undefined) => other !== undefined && this.#compare(other, item) < 0
    const at = Math.min(
      firstNot(this.#chunks, chunk => isBefore(chunk?.at(-1))),
      Math.max(this.#chunks.length - 1, 0),
    )
    const chunk = this.#chunks[at]
    return { at, chunk, index: firstNot(chunk ?? [], isBefore) }
  }
}

/** By halving: the index of the first that is not before, or the length. */
function firstNot<T>(sorted: readonly T[], isBefore: (item: T | undefined) => boolean): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (isBefore(sorted[middle])) from = middle + 1
    else to = middle
  }
  return from
}
