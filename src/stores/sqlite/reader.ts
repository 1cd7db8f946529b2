// Reads the embedded store on the main thread, over a connection that does not wait for locks.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { newestPage, numberOf, positionOf, readSinceText, type SinceKey } from '../ordering.ts'
import {
  type Freshness,
  type ListQuery,
  type NewestQuery,
  newFreshness,
  type Page,
  type StoredEntry,
  type StoredValue,
} from '../store.ts'
import { type Candidate, pageOf, type TrailPage, type TrailQuery } from '../trail.ts'
import { faultOf, SqliteFault } from './faults.ts'
import { openForReading } from './file.ts'
import { readLabels } from './labels.ts'

export interface SqliteReader extends Pick<Snapshots, 'beginTurn' | 'isCurrent' | 'invalidate'> {
  /** The latest version of the record, if it has not expired. */
  getUnexpired(key: string): StoredEntry | undefined
  /** Its value without labels, as of the last snapshot of this event turn. */
  getUnexpiredValue(key: string): StoredValue | undefined
  list(query: ListQuery): Page
  newest(query: NewestQuery): Page
  count(): number
  hasExpired(): boolean
  trailPage(query: TrailQuery): TrailPage
  close(): void
}

interface ReaderOptions {
  readonly file: string
  readonly now: () => number
  /** How often the writer has opened the file. */
  readonly opened: () => number
}

interface Connection {
  readonly database: DatabaseSync
  readonly dataVersion: StatementSync
  readonly state: StatementSync
  readonly find: StatementSync
  readonly findValue: StatementSync
  readonly findVersion: StatementSync
  readonly listed: StatementSync
  readonly newest: StatementSync
  readonly hasExpired: StatementSync
  readonly eventsBefore: StatementSync
  readonly eventsAfter: StatementSync
}

/** All methods throw a `SqliteFault` or an error of SQLite. */
export function createSqliteReader({ file, now, opened }: ReaderOptions): SqliteReader {
  let connection: Connection | undefined
  let isClosed = false
  let seenOpened = opened()
  let dataVersion: unknown
  let generation = 0
  /** Grows with each connection: a new one may belong to another file. */
  let connections = 0

  function connect(): Connection {
    if (isClosed) throw new SqliteFault('closed', 'The store is closed.')
    if (connection && opened() !== seenOpened) disconnect()
    if (connection) return connection
    seenOpened = opened()
    connections++
    dataVersion = undefined
    connection = prepareAll(openForReading(file))
    return connection
  }

  function disconnect(): void {
    const { database } = connection ?? {}
    connection = undefined
    database?.close()
  }

  /** After a fault, the next read opens the file again. */
  function withConnection<Result>(read: (connection: Connection) => Result): Result {
    try {
      return read(connect())
    } catch (error) {
      if (faultOf(error).kind !== 'locked') disconnectQuietly()
      throw error
    }
  }

  function disconnectQuietly(): void {
    try {
      disconnect()
    } catch {
      // It is dropped.
    }
  }

  const snapshots = createSnapshots({
    now,
    // One statement if nothing was written since the last snapshot. A new connection begins a new generation.
    readGeneration: () =>
      withConnection(({ dataVersion: latestDataVersion, state }) => {
        const [latest] = rowOf(latestDataVersion.get())
        if (latest !== dataVersion) {
          generation = Number(rowOf(state.get('generation'))[0])
          dataVersion = latest
        }
        return generation + connections / MAX_CONNECTIONS
      }),
    lookUp: key =>
      withConnection(({ findVersion }) => {
        const row = findVersion.get(key)
        if (row === undefined) return undefined
        const [version, expiresAt] = rowOf(row)
        return { version: Number(version), expiresAt: Number(expiresAt) }
      }),
  })

  function isUnexpired({ expiresAt }: Pick<StoredEntry, 'expiresAt'>): boolean {
    return expiresAt > now()
  }

  function ifUnexpired(row: unknown): StoredEntry | undefined {
    const stored = row === undefined ? undefined : storedOf(row)
    return stored && isUnexpired(stored) ? stored : undefined
  }

  return {
    beginTurn: snapshots.beginTurn,
    isCurrent: snapshots.isCurrent,
    invalidate: snapshots.invalidate,

    getUnexpired: key => withConnection(({ find }) => ifUnexpired(find.get(key))),

    getUnexpiredValue(key) {
      snapshots.refreshSnapshot()
      return withConnection(({ findValue }) => {
        const row = findValue.get(key)
        if (row === undefined) return undefined
        const [version, expiresAt, value] = rowOf(row) as [number, number, Uint8Array]
        if (expiresAt <= now()) return undefined
        return { key, version, value, expiresAt, freshness: snapshots.freshUntil(expiresAt) }
      })
    },

    list: query => withConnection(({ listed }) => listPage(query, listed, ifUnexpired)),

    newest: ({ before, limit }) =>
      withConnection(({ newest }) => {
        let current: unknown
        const keys = (function* (): Generator<SinceKey> {
          for (let from = readSinceText(before) ?? AFTER_ALL; ; ) {
            const rows = newest.all(from.since, from.key, limit + 1)
            for (const row of rows) {
              current = row
              const { since = 0, key } = storedOf(row)
              from = { since, key }
              yield from
            }
            if (rows.length <= limit) return
          }
        })()
        return newestPage(keys, () => ifUnexpired(current), limit)
      }),

    count: () => withConnection(({ state }) => Number(rowOf(state.get('records_with_since'))[0])),

    hasExpired: () => withConnection(({ hasExpired }) => hasExpired.get(now()) !== undefined),

    trailPage: query => withConnection(connection => pageOf(candidatesOf(connection, query), query)),

    close() {
      isClosed = true
      disconnect()
    },
  }
}

/** More than a process ever opens: the fraction of a generation distinguishes connections. */
const MAX_CONNECTIONS = 2 ** 16

const COLUMNS = 'r.key, r.version, r.expires_at, r.since, r.labels, r.value'

function prepareAll(database: DatabaseSync): Connection {
  const sql = (text: string) => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    return statement
  }
  // A tag is searched for in the text of the tags first: most events do not have it, and their values are not read.
  const event = 'number, tags, CASE WHEN ?2 IS NULL OR instr(tags, ?2) THEN value END'
  try {
    return {
      database,
      dataVersion: sql('PRAGMA data_version'),
      state: sql('SELECT number FROM store_state WHERE name = ?'),
      find: sql(`SELECT ${COLUMNS} FROM records r WHERE key = ?`),
      findValue: sql('SELECT version, expires_at, value FROM records WHERE key = ?'),
      findVersion: sql('SELECT version, expires_at FROM records WHERE key = ?'),
      listed: sql(
        `SELECT ${COLUMNS} FROM record_labels l CROSS JOIN records r ON r.key = l.key
         WHERE l.label = ? AND l.key > ? ORDER BY l.key LIMIT ?`,
      ),
      newest: sql(
        `SELECT ${COLUMNS} FROM records r WHERE since IS NOT NULL AND (since, key) < (?, ?)
         ORDER BY since DESC, key DESC LIMIT ?`,
      ),
      hasExpired: sql('SELECT 1 FROM records WHERE expires_at <= ? LIMIT 1'),
      eventsBefore: sql(`SELECT ${event} FROM audit_events WHERE number < ?1 ORDER BY number DESC LIMIT ?3`),
      eventsAfter: sql(`SELECT ${event} FROM audit_events WHERE number > ?1 ORDER BY number LIMIT ?3`),
    }
  } catch (error) {
    database.close()
    throw error
  }
}

/** Node's types do not know that the rows are lists. */
function rowOf(row: unknown): readonly unknown[] {
  return row as readonly unknown[]
}

function storedOf(row: unknown): StoredEntry {
  const [key, version, expiresAt, since, labels, value] = row as [
    string,
    number,
    number,
    number | null,
    string,
    Uint8Array,
  ]
  return { key, version, expiresAt, labels: readLabels(labels), value, ...(since !== null && { since }) }
}

const AFTER_ALL: SinceKey = { since: Number.MAX_SAFE_INTEGER, key: '' }

/** Expired records that are skipped for one page. Then the page is short instead of late. */
const MAX_SKIPPED = 1000

function listPage(
  { label, after = '', limit }: ListQuery,
  listed: StatementSync,
  ifUnexpired: (row: unknown) => StoredEntry | undefined,
): Page {
  const entries: StoredEntry[] = []
  let skipped = 0
  for (let from = after; ; ) {
    const rows = listed.all(label, from, limit + 1)
    for (const row of rows) {
      from = String(rowOf(row)[0])
      const stored = ifUnexpired(row)
      if (!stored) {
        if (++skipped === MAX_SKIPPED) return { entries, next: from }
        continue
      }
      if (entries.length === limit) return { entries, next: entries.at(-1)?.key ?? after }
      entries.push(stored)
    }
    if (rows.length <= limit) return { entries }
  }
}

function candidatesOf({ eventsBefore, eventsAfter }: Connection, query: TrailQuery): Candidate[] {
  const { before, after, tag, scan } = query
  const quoted = tag === undefined ? null : JSON.stringify(tag)
  // One more than the page looks at, which shows whether there is a next page.
  const rows =
    after === undefined
      ? eventsBefore.all(numberOf(before) ?? Number.MAX_SAFE_INTEGER, quoted, scan + 1)
      : eventsAfter.all(numberOf(after) ?? -1, quoted, scan + 1)
  return rows.map(row => {
    const [number, tags, value] = rowOf(row) as [number, string, Uint8Array | null]
    const position = positionOf(number)
    return { position, event: value === null ? undefined : { position, value, tags: readLabels(tags) } }
  })
}
// Proves that a record is unchanged without reading it. Every write begins a new generation of the files. While the generation is the same, a record
// that was looked up is unchanged, and one read of the generation serves all requests of an event turn.
//
// The requests of one turn arrived before it, so that none of them can depend on a later write of another process. The requests
// after a timer may have arrived after it. So a snapshot serves the callback that takes it, and if that callback belongs to a request,
// all other requests of the same turn.

export interface Snapshots {
  /** A request has just been received. */
  beginTurn(): void
  /** Makes reads see all writes up to now, or up to an earlier snapshot of this turn. */
  refreshSnapshot(): void
  /** Whether the record has this version. It is looked up only if something has changed. */
  isCurrent(key: string, version: number, freshness?: Freshness): boolean
  /** For what was read after `refreshSnapshot`. */
  freshUntil(expiresAt: number): Freshness
  /** Something may have changed during the turn. */
  invalidate(): void
}

interface FoundVersion {
  readonly version: number
  readonly expiresAt: number
}

interface SnapshotsOptions {
  /** Makes reads see all writes up to now, and returns the generation. */
  readGeneration(): number
  lookUp(key: string): FoundVersion | undefined
  now(): number
}

export function createSnapshots({ readGeneration, lookUp, now }: SnapshotsOptions): Snapshots {
  let generation: number | undefined
  /** How many generations were seen: 0 is none. Unlike a generation, a small number that V8 keeps without an object. */
  let seen = 0
  let isTurnOfRequests = false
  let isSnapshotFresh = false

  function beginTurn(): void {
    if (isTurnOfRequests) return
    isTurnOfRequests = true
    isSnapshotFresh = false
    setImmediate(() => {
      isTurnOfRequests = false
      isSnapshotFresh = false
    })
  }

  function invalidate(): void {
    isSnapshotFresh = false
  }

  function refreshSnapshot(): void {
    if (isSnapshotFresh) return
    const latest = readGeneration()
    if (latest !== generation) seen++
    generation = latest
    // Not earlier: after a failed read nothing is known to be current.
    isSnapshotFresh = true
    if (!isTurnOfRequests) process.nextTick(invalidate)
  }

  return {
    beginTurn,
    refreshSnapshot: refreshSnapshot,
    invalidate,
    freshUntil: expiresAt => ({ validIn: seen, validUntil: expiresAt }),
    isCurrent(key, version, freshness = newFreshness()) {
      refreshSnapshot()
      if (freshness.validIn !== seen) {
        const found = lookUp(key)
        if (found?.version !== version) return false
        freshness.validIn = seen
        freshness.validUntil = found.expiresAt
      }
      return freshness.validUntil > now()
    },
  }
}
