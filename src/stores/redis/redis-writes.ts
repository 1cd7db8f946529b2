// Changes a record in Redis, and its indexes around it: see indexes/label-index.ts.

import { nextVersion } from '../first-version.ts'
import type { Entry } from '../store.ts'
import type { Connection } from './connection.ts'
import { addToIndexes, removeFromIndexes } from './indexes/index-writes.ts'
import { isIndexedAlike, newGeneration } from './indexes/label-index.ts'
import { decodeReply, encodeRecord, encodeVersion, type Indexed, keptMs, recordName } from './redis-record.ts'

interface RecordWrite {
  readonly key: string
  readonly entry: Entry
  /** In whose place it is written; absent where there must be nothing. */
  readonly old?: Indexed
}

/** Its version; `undefined` if what is there is not `old`. */
export async function putRecord(
  connection: Connection,
  write: RecordWrite,
  now: () => number,
): Promise<number | undefined> {
  const { key, entry, old } = write
  const { commands } = connection
  const generation = old && isIndexedAlike(old, entry) ? old.generation : newGeneration()
  const next = { ...entry, key, generation, version: nextVersion(old) }
  const record = encodeRecord(next)
  const isMoved = generation !== old?.generation
  if (isMoved) await addToIndexes(commands, next, now())
  const version = old ? encodeVersion(old.version) : Buffer.alloc(0)
  const written = await forgetting(connection, key, () =>
    commands.put(recordName(key), version, now(), record, keptMs(entry, now())),
  )
  const obsolete = written ? old : next
  if (isMoved && obsolete) removeFromIndexes(commands, obsolete)
  return written ? next.version : undefined
}

/** What was removed, expired or not. */
export async function takeRecord(connection: Connection, key: string): Promise<Indexed | undefined> {
  const { commands } = connection
  const old = decodeReply(key, await forgetting(connection, key, () => commands.getAndDelete(recordName(key))))
  if (old) removeFromIndexes(commands, old)
  return old
}

/** Nothing that is read before the change may be known after it. */
async function forgetting<Result>(connection: Connection, key: string, change: () => Promise<Result>): Promise<Result> {
  connection.forget(key)
  return change().finally(() => connection.forget(key))
}
