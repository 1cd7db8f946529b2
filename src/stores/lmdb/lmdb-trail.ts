// The trail of the embedded store: its events under numbers that only go up, whichever process adds them.

import { packEntry, unpackEntry } from '../entry-bytes.ts'
import { numberOf, positionOf } from '../sequence.ts'
import { type PlacedEvent, pageOf, type Trail, type TrailQuery } from '../trail.ts'
import { onDisk, unavailable } from './lmdb-failures.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import type { LmdbReader } from './lmdb-reader.ts'

const NEVER = Number.POSITIVE_INFINITY
/** So many more than were added are let go of at once: after `keep` became smaller nobody waits long. */
const MOST_TRIMMED = 1000

interface TrailOptions {
  readonly files: LmdbFiles
  readonly reader: LmdbReader
  /** Once it is aborted, nothing is written any more: lmdb-js would end the process. */
  readonly closing: AbortSignal
}

export function createLmdbTrail({ files, reader, closing }: TrailOptions): Trail {
  const { trail, directory } = files

  /** In a transaction of its own: nobody else counts on meanwhile. */
  function write(records: readonly Buffer[], keep: number): void {
    const [last = 0] = trail.getKeys({ reverse: true, limit: 1 })
    for (const [n, record] of records.entries()) trail.put(last + 1 + n, record)
    const oldestKept = last + records.length - keep + 1
    const surplus = [...trail.getKeys({ end: oldestKept, limit: records.length + MOST_TRIMMED })]
    for (const number of surplus) trail.remove(number)
  }

  return {
    async append(events, keep) {
      const records = events.map(({ value, tags }) => packEntry({ value, labels: tags, expiresAt: NEVER }))
      try {
        closing.throwIfAborted()
        await onDisk(trail.transaction(() => write(records, keep)))
      } catch (cause) {
        throw unavailable(directory, 'could not be written', cause)
      }
    },

    async read(query) {
      return reader.latest(() => pageOf(eventsOf(files, query), query))
    },
  }
}

function* eventsOf({ trail }: LmdbFiles, { before, after }: TrailQuery): Generator<PlacedEvent> {
  const start = numberOf(after ?? before)
  const range = start === undefined ? {} : { start, exclusiveStart: true }
  for (const { key, value: record } of trail.getRange({ ...range, reverse: after === undefined })) {
    const entry = unpackEntry(record)
    // A damaged one says nothing.
    if (entry) yield { position: positionOf(key), value: entry.value, tags: entry.labels }
  }
}
