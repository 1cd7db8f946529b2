// How entries with `since` are listed: by that time and, of the same time, by their keys.

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
