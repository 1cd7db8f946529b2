// The changes of the embedded store, as the thread makes them. All of them run inside a transaction.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Entry, nextVersion } from '../store.ts'
import { type KindCount, surplusOf, type TrailEvent } from '../trail.ts'
import { readLabels } from './labels.ts'

/** One change, as it is sent to the thread. Times are those of the caller's clock. */
export type Change =
  | { readonly verb: 'create'; readonly key: string; readonly entry: Entry; readonly now: number }
  | {
      readonly verb: 'replace'
      readonly key: string
      readonly entry: Entry
      readonly version: number
      readonly now: number
    }
  | { readonly verb: 'remove'; readonly key: string; readonly now: number }
  | { readonly verb: 'take'; readonly key: string; readonly now: number }
  | { readonly verb: 'append'; readonly events: readonly TrailEvent[]; readonly keep: number }
  | { readonly verb: 'sweep'; readonly now: number }
  /** Proves that the file is open. */
  | { readonly verb: 'open' }

/** What a change returns: a version, whether there was an entry, the entry, how many records were swept. */
export type ChangeResult = number | boolean | Entry | undefined

export interface ChangeApplier {
  apply(change: Change): ChangeResult
  /** Called before the commit: notes what the applied changes mean for readers. */
  finish(): void
  /** Called after a transaction that failed. */
  reset(): void
}

/** How many expired records one step removes: no other change waits long for it. */
export const SWEEP_STEP = 30
const NO_KIND = ''
const NO_VALUE = new Uint8Array()

interface RecordRow {
  readonly id: number
  readonly key: string
  readonly version: number
  readonly expires_at: number
  readonly since: number | null
  readonly labels: string
}

export function createChangeApplier(database: DatabaseSync): ChangeApplier {
  const sql = (text: string) => database.prepare(text)
  const find = sql('SELECT id, key, version, expires_at, since, labels FROM records WHERE key = ?')
  const readValue = sql('SELECT value FROM records WHERE id = ?')
  const insert = sql('INSERT INTO records (key, version, expires_at, since, labels, value) VALUES (?, ?, ?, ?, ?, ?)')
  const update = sql('UPDATE records SET version = ?, expires_at = ?, since = ?, labels = ?, value = ? WHERE id = ?')
  const remove = sql('DELETE FROM records WHERE id = ?')
  const addLabel = sql('INSERT OR IGNORE INTO record_labels (label, key) VALUES (?, ?)')
  const dropLabel = sql('DELETE FROM record_labels WHERE label = ? AND key = ?')
  const expired = sql(
    `SELECT id, key, version, expires_at, since, labels FROM records WHERE expires_at <= ? ORDER BY expires_at LIMIT ${SWEEP_STEP}`,
  )
  const addToState = sql('UPDATE store_state SET number = number + ? WHERE name = ?')
  const trail = createTrailChanges(sql)

  let hasChanged = false
  let moreWithSince = 0

  function findRecord(key: string): RecordRow | undefined {
    return find.get(key) as RecordRow | undefined
  }

  function put(key: string, entry: Entry, old: RecordRow | undefined): number {
    const version = nextVersion(old)
    const { expiresAt, since = null, value } = entry
    const labels = JSON.stringify(entry.labels)
    if (old) update.run(version, expiresAt, since, labels, value, old.id)
    else insert.run(key, version, expiresAt, since, labels, value)
    if (old?.labels !== labels) changeLabels(key, readLabels(old?.labels), entry.labels)
    moreWithSince += Number(since !== null) - Number((old?.since ?? null) !== null)
    hasChanged = true
    return version
  }

  function drop({ id, key, since, labels }: RecordRow): void {
    remove.run(id)
    changeLabels(key, readLabels(labels), [])
    moreWithSince -= Number(since !== null)
  }

  function changeLabels(key: string, before: readonly string[], after: readonly string[]): void {
    for (const label of before) if (!after.includes(label)) dropLabel.run(label, key)
    for (const label of after) if (!before.includes(label)) addLabel.run(label, key)
  }

  function removeRecord(key: string, now: number, withValue: boolean): Entry | undefined {
    const old = findRecord(key)
    if (!old || old.expires_at <= now) return undefined
    const value = withValue ? (Object(readValue.get(old.id)).value as Uint8Array) : NO_VALUE
    const { expires_at: expiresAt, since } = old
    drop(old)
    hasChanged = true
    return { value, expiresAt, labels: readLabels(old.labels), ...(since !== null && { since }) }
  }

  function apply(change: Change): ChangeResult {
    switch (change.verb) {
      case 'create': {
        const old = findRecord(change.key)
        return old && old.expires_at > change.now ? undefined : put(change.key, change.entry, old)
      }
      case 'replace': {
        const old = findRecord(change.key)
        const isCurrent = old?.version === change.version && old.expires_at > change.now
        return isCurrent ? put(change.key, change.entry, old) : undefined
      }
      case 'remove':
        return removeRecord(change.key, change.now, false) !== undefined
      case 'take':
        return removeRecord(change.key, change.now, true)
      case 'append':
        return trail.append(change.events, change.keep)
      case 'sweep': {
        // Readers treat expired records as absent, so nothing changes for them.
        const found = expired.all(change.now) as unknown as RecordRow[]
        for (const record of found) drop(record)
        return found.length
      }
      case 'open':
        return undefined
    }
  }

  function reset(): void {
    hasChanged = false
    moreWithSince = 0
  }

  return {
    apply,
    finish() {
      if (hasChanged) addToState.run(1, 'generation')
      if (moreWithSince !== 0) addToState.run(moreWithSince, 'records_with_since')
      reset()
    },
    reset,
  }
}

function createTrailChanges(sql: (text: string) => StatementSync) {
  const readKinds = sql('SELECT kind, events, last_number FROM audit_kinds')
  const insert = sql('INSERT INTO audit_events (number, kind, tags, value) VALUES (?, ?, ?, ?)')
  const trim = sql(
    'DELETE FROM audit_events WHERE number IN (SELECT number FROM audit_events WHERE kind = ? ORDER BY number LIMIT ?)',
  )
  const writeKind = sql('INSERT OR REPLACE INTO audit_kinds (kind, events, last_number) VALUES (?, ?, ?)')

  function append(events: readonly TrailEvent[], keep: number): undefined {
    const kinds = new Map<string, KindCount>()
    for (const { kind, events, last_number } of readKinds.all())
      kinds.set(String(kind), { count: Number(events), last: Number(last_number) })
    const before = new Map(kinds)
    let last = Math.max(0, ...[...kinds.values()].map(kind => kind.last))
    for (const { kind = NO_KIND, tags, value } of events) {
      insert.run(++last, kind, JSON.stringify(tags), value)
      kinds.set(kind, { count: (kinds.get(kind)?.count ?? 0) + 1, last })
    }
    const surplus = surplusOf(kinds, keep, events.length)
    for (const [kind, dropped] of surplus) trim.run(kind, dropped)
    for (const [kind, known] of kinds) {
      const dropped = surplus.get(kind) ?? 0
      if (dropped > 0 || known !== before.get(kind)) writeKind.run(kind, known.count - dropped, known.last)
    }
    return undefined
  }

  return { append }
}
