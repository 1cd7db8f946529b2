// The trail of the embedded store. Its keys are a kind and a number that only goes up, whichever process appends. The number of
// events of each kind is kept in a table beside it.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { createEventReader, packEvent } from '../entry-bytes.ts'
import { numberOf, positionOf } from '../ordering.ts'
import {
  type Candidate,
  type Lane,
  merged,
  orderOf,
  pageInSteps,
  pageOf,
  surplusOf,
  type Trail,
  type TrailQuery,
} from '../trail.ts'
import { type LmdbFiles, unavailable } from './lmdb-files.ts'
import type { LmdbReader } from './lmdb-reader.ts'

/** Before all numbers, and after them. */
const [FIRST, LAST] = [0, Number.MAX_SAFE_INTEGER]
const NO_KIND = ''
/** How many events more than were added one append drops: after `keep` became smaller no caller waits long. */
const MOST_TRIMMED = 1000

interface TrailOptions {
  readonly files: LmdbFiles
  readonly reader: LmdbReader
  /** After an abort nothing is written: lmdb-js would end the process. */
  readonly closing: AbortSignal
}

export function createLmdbTrail({ files, reader, closing }: TrailOptions): Trail {
  const { trail, directory } = files

  /** Runs in a transaction: no other process appends at the same time. */
  function write(records: readonly KindRecord[], keep: number): void {
    const lanes = lanesOf(files)
    let last = Math.max(0, ...[...lanes.values()].map(lane => lane.last))
    for (const { kind, record } of records) {
      trail.put([kind, ++last], record)
      lanes.set(kind, { count: (lanes.get(kind)?.count ?? 0) + 1, last })
    }
    const total = [...lanes.values()].reduce((sum, { count }) => sum + count, 0)
    for (const [kind, surplus] of surplusOf(lanes, Math.max(keep, total - records.length - MOST_TRIMMED))) {
      const { count, last } = lanes.get(kind) ?? { count: 0, last: 0 }
      for (const key of [...trail.getKeys({ ...rangeOf(kind), limit: surplus })]) trail.remove(key)
      lanes.set(kind, { count: count - surplus, last })
    }
    for (const [kind, lane] of lanes) files.trailKinds.put(kindName(kind), packLane(lane))
  }

  return {
    async append(events, keep) {
      const records = events.map(event => ({ kind: event.kind ?? NO_KIND, record: packEvent(event) }))
      try {
        closing.throwIfAborted()
        await files.write(() => trail.transaction(() => write(records, keep)))
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

interface KindRecord {
  readonly kind: string
  readonly record: Buffer
}

type TrailKey = [kind: string, number: number]

function rangeOf(kind: string, after = FIRST, before = LAST): { start: TrailKey; end: TrailKey } {
  return { start: [kind, after + 1], end: [kind, before] }
}

/** A name in LMDB is not empty. */
function kindName(kind: string): string {
  return `kind ${kind}`
}

/** How many events there are of each kind. */
function lanesOf({ trailKinds }: LmdbFiles): Map<string, Lane> {
  const lanes = new Map<string, Lane>()
  for (const { key, value } of trailKinds.getRange()) lanes.set(key.slice(kindName('').length), unpackLane(value))
  return lanes
}

function packLane({ count, last }: Lane): Buffer {
  const bytes = Buffer.allocUnsafe(16)
  bytes.writeDoubleLE(count, 0)
  bytes.writeDoubleLE(last, 8)
  return bytes
}

function unpackLane(bytes: Buffer): Lane {
  return bytes.length < 16 ? { count: 0, last: 0 } : { count: bytes.readDoubleLE(0), last: bytes.readDoubleLE(8) }
}

function candidatesOf(files: LmdbFiles, query: TrailQuery): Generator<Candidate> {
  const { before, after, tag } = query
  const read = createEventReader(tag)
  const lanes = [...lanesOf(files).keys()].map(kind => laneCandidates(files, kind, numberOf(before), after, read))
  return merged(lanes, orderOf(query))
}

function* laneCandidates(
  { trail }: LmdbFiles,
  kind: string,
  before: number | undefined,
  after: string | undefined,
  read: ReturnType<typeof createEventReader>,
): Generator<Candidate> {
  const backward = { start: [kind, (before ?? LAST) - 1] as TrailKey, end: [kind, FIRST] as TrailKey, reverse: true }
  const range = after === undefined ? backward : rangeOf(kind, numberOf(after))
  for (const key of trail.getKeys(range)) {
    const position = positionOf(key[1])
    const record = trail.getBinaryFast(key)
    // The buffer of lmdb-js is longer than the record.
    const event = record && read(record.subarray(0, record.length))
    yield { position, event: event && { position, ...event } }
  }
}
