// All pages of a listing. Each has the `next` that the following page begins after; the last one has none. A page can be empty
// and not the last, so that only `next` ends the loop.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Store, StoredEntry } from './store.ts'

/** `read` is called with the `next` of the previous page. */
export async function* allPages<Page extends { readonly next?: string }>(
  read: (next: string | undefined) => Promise<Page>,
): AsyncGenerator<Page> {
  let next: string | undefined
  do {
    const page = await read(next)
    yield page
    next = page.next
    // A store in memory answers immediately, however many pages there are.
    if (next !== undefined) await nextTurn()
  } while (next !== undefined)
}

const ENTRIES_PER_PAGE = 100

/** The entries with a label, page by page. */
export async function* entryPages(store: Pick<Store, 'list'>, label: string): AsyncGenerator<readonly StoredEntry[]> {
  for await (const { entries } of allPages(after => store.list({ label, limit: ENTRIES_PER_PAGE, after })))
    yield entries
}

export async function allEntries(store: Pick<Store, 'list'>, label: string): Promise<StoredEntry[]> {
  const all: StoredEntry[] = []
  for await (const entries of entryPages(store, label)) all.push(...entries)
  return all
}
