// The embedded store: one database file, shared by the processes of one machine, consistent after any crash.

import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MenshenError } from '../../errors.ts'
import { phrase, phrasedError, phraseIn } from '../../text/text.ts'
import type { Store } from '../store.ts'
import { pageInSteps } from '../trail.ts'
import type { Change, ChangeResult } from './changes.ts'
import { faultOf, SqliteFault } from './faults.ts'
import { createSqliteReader } from './reader.ts'
import { startSweeper } from './sweeper.ts'
import { acquireWriter } from './writer.ts'

const DEADLINE_MS = 10_000

interface SqliteStoreOptions {
  readonly file: string
  readonly now: () => number
  readonly sweepIntervalMs?: number
  /** How long a change waits for the disk, or for a lock of another process. */
  readonly deadlineMs?: number
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { file, now, sweepIntervalMs = 1000, deadlineMs = DEADLINE_MS } = options
  const path = resolve(file)
  const writer = await acquireWriter(path, deadlineMs).catch(error => {
    throw cannotOpen(file, error)
  })
  const reader = createSqliteReader({ file: path, now, opened: writer.opened })
  let isClosed = false

  async function change(change: Change): Promise<ChangeResult> {
    try {
      if (isClosed) throw new SqliteFault('closed', 'the store is closed')
      return await writer.change(change)
    } catch (cause) {
      throw unavailable('store_not_written', file, cause)
    } finally {
      reader.invalidate()
    }
  }

  function withStoreErrors<Result>(read: () => Result): Result {
    try {
      return read()
    } catch (cause) {
      throw unavailable('store_not_read', file, cause)
    }
  }

  const hasUnexpired = (key: string) => withStoreErrors(() => reader.getUnexpired(key)) !== undefined
  const sweeper = startSweeper({ now, intervalMs: sweepIntervalMs, hasExpired: reader.hasExpired, change })
  const watch = watchFile(path, () => change({ verb: 'open' }))

  return {
    trail: {
      async append(events, keep) {
        await change({ verb: 'append', events: events.map(copyOf), keep })
      },
      read: query =>
        pageInSteps(query, async step => {
          await nextTurn()
          return withStoreErrors(() => reader.trailPage(step))
        }),
    },

    async create(key, entry) {
      return (await change({ verb: 'create', key, entry: copyOf(entry), now: now() })) as number | undefined
    },

    async read(key) {
      return withStoreErrors(() => reader.getUnexpired(key))
    },

    async readLatest(key) {
      return withStoreErrors(() => reader.getUnexpired(key))
    },

    readSync: key => withStoreErrors(() => reader.getUnexpiredValue(key)),
    beginTurn: reader.beginTurn,
    isCurrent: (key, version, freshness) => withStoreErrors(() => reader.isCurrent(key, version, freshness)),

    async replace(key, entry, version) {
      if (withStoreErrors(() => reader.getUnexpired(key))?.version !== version) return undefined
      return (await change({ verb: 'replace', key, entry: copyOf(entry), version, now: now() })) as number | undefined
    },

    async remove(key) {
      return hasUnexpired(key) && (await change({ verb: 'remove', key, now: now() })) === true
    },

    async take(key) {
      if (!hasUnexpired(key)) return undefined
      return (await change({ verb: 'take', key, now: now() })) as Awaited<ReturnType<Store['take']>>
    },

    async list(query) {
      return withStoreErrors(() => reader.list(query))
    },

    async newest(query) {
      return withStoreErrors(() => reader.newest(query))
    },

    async count() {
      return withStoreErrors(reader.count)
    },

    async ready() {
      withStoreErrors(reader.count)
    },

    async close() {
      if (isClosed) return
      isClosed = true
      try {
        watch.stop()
        await sweeper.stop()
        reader.close()
        // Last: the connection that writes removes the WAL.
        await writer.release()
      } catch (cause) {
        throw unavailable('store_not_closed', file, cause)
      }
    },
  }
}

/** How soon a store continues with the file that replaced its own. */
const FILE_CHECK_INTERVAL_MS = 1000

/** A deleted or replaced file would be written to until the process ends, and everything in it would be lost. */
function watchFile(path: string, onOther: () => Promise<unknown>): { stop(): void } {
  let identity: string | undefined
  const checkFile = async () => {
    const found = await stat(path).then(
      ({ dev, ino }) => `${dev} ${ino}`,
      () => 'missing',
    )
    if (identity !== undefined && found !== identity) await onOther().catch(() => {})
    identity = found
  }
  const timer = setInterval(checkFile, FILE_CHECK_INTERVAL_MS).unref()
  void checkFile()
  return { stop: () => clearInterval(timer) }
}

/** A copy of the bytes as they are now, without the rest of their buffer, which would be sent with them. */
function copyOf<Valued extends { readonly value: Uint8Array }>(valued: Valued): Valued {
  return { ...valued, value: new Uint8Array(valued.value) }
}

function faultPhrase(error: unknown) {
  const { kind, reason } = faultOf(error)
  return phrase(`store_fault_${kind}`, { reason })
}

function unavailable(
  problem: 'store_not_written' | 'store_not_read' | 'store_not_closed',
  file: string,
  cause: unknown,
): MenshenError {
  return phrasedError('store_unavailable', phrase(problem, { file, fault: faultPhrase(cause) }), cause)
}

export function cannotOpen(file: string, cause: unknown): MenshenError {
  const problem = phrase('store_cannot_be_opened', { file, fault: faultPhrase(cause) })
  return new MenshenError('cannot_start', [{ setting: 'STORE', message: phraseIn('en', problem) }], cause, problem)
}
