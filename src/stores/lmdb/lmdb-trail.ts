// The trail of the embedded store: its events under numbers that only go up, whichever process adds them.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { numberOf, positionOf } from '../sequence.ts'
import { type Candidate, pageInSteps, pageOf, type Trail, type TrailQuery } from '../trail.ts'
import { createEventReader, packEvent } from '../trail-bytes.ts'
import { onDisk, unavailable } from './lmdb-failures.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import type { LmdbReader } from './lmdb-reader.ts'

/** Behind all of them. */
const NONE = Number.POSITIVE_INFINITY
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
      const records = events.map(packEvent)
      try {
        closing.throwIfAborted()
        await onDisk(trail.transaction(() => write(records, keep)))
      } catch (cause) {
        throw unavailable(directory, 'could not be written', cause)
      }
    },

    read: query =>
      pageInSteps(query, async step => {
        await nextTurn()
        return reader.latest(() => pageOf(candidatesOf(files, step), step))
      }),
  }
}

function* candidatesOf({ trail }: LmdbFiles, { before, after, tag }: TrailQuery): Generator<Candidate> {
  const read = createEventReader(tag)
  const [first = 1] = trail.getKeys({ limit: 1 })
  const [last = 0] = trail.getKeys({ limit: 1, reverse: true })
  const candidate = (number: number): Candidate => {
    const position = positionOf(number)
    const record = trail.getBinaryFast(number)
    // It lies in a buffer of lmdb-js, which is longer than it says.
    const event = record && read(record.subarray(0, record.length))
    return { position, event: event && { position, ...event } }
  }
  if (after === undefined)
    for (let number = Math.min(last + 1, numberOf(before) ?? NONE) - 1; number >= first; number--)
      yield candidate(number)
  else for (let number = Math.max(first, (numberOf(after) ?? 0) + 1); number <= last; number++) yield candidate(number)
}
