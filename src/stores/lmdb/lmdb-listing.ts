// Lists the living records, of a label or the newest, page by page.

import { newestPage, readSinceText } from '../newest.ts'
import type { ListQuery, NewestQuery, Page, Stored } from '../store.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import { keysWithLabel, newestFirst } from './lmdb-indexes.ts'
import type { LmdbReader } from './lmdb-reader.ts'

/** A page is short rather than late: so many expired ones are passed over for it. */
const MOST_PASSED_OVER = 1000

export function listLiving(files: LmdbFiles, reader: LmdbReader, { label, after = '', limit }: ListQuery): Page {
  return reader.latest(() => {
    const entries: Stored[] = []
    let passedOver = 0
    for (const key of keysWithLabel(files, label, after)) {
      const stored = reader.findLiving(key)
      if (!stored) {
        if (++passedOver === MOST_PASSED_OVER) return { entries, next: key }
        continue
      }
      if (entries.length === limit) return { entries, next: entries.at(-1)?.key ?? after }
      entries.push(stored)
    }
    return { entries }
  })
}

export function listNewest(files: LmdbFiles, reader: LmdbReader, { before, limit }: NewestQuery): Page {
  return reader.latest(() => newestPage(newestFirst(files, readSinceText(before)), reader.findLiving, limit))
}
