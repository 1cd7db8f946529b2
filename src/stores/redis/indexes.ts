// The indexes by which entries are listed. Each label has an index: a sorted set whose members are in the order of their keys. All
// entries with `since` share another one, which is sorted by that time. An example:
//
//   entry   key 'k7Qx', label 'user zhangsan', since 1763450000000, expires at 1763471600000
//   record  menshen:record:k7Qx, of generation 'aB3dE5gH'
//   index   menshen:label:<hash of 'user zhangsan'>
//   member  k7Qx \0 0001763471600000 aB3dE5gH                       key, zero byte, 16 digits of expiry, generation
//   index   menshen:{newest}:since and menshen:{newest}:expiry
//   member  0001763450000000 k7Qx \0 0001763471600000 aB3dE5gH      16 digits of since, and the member above
//
// (Without the spaces.) A page ends with the part of a member before its zero byte, its prefix, and the next page begins after it.
//
// A single server writes a record and its indexes in one step. In a cluster that is impossible: a record is added to its indexes
// before it is written and removed after it is gone, and a member is valid only while the record has its label. Each attempt to
// write has a new generation, so that a loser removes only its own members. Members that a crash leaves behind are dropped after
// their expiry.

import { hash, randomBytes } from 'node:crypto'
import { type Entry, type ListQuery, type NewestQuery, nextVersion } from '../store.ts'
import type { Commands, IndexChange, IndexMembers, IndexPair } from './commands.ts'
import type { RedisConnection } from './connection.ts'
import {
  decodeReply,
  encodeRecord,
  encodeVersion,
  GENERATION_LENGTH,
  type RedisEntry,
  recordName,
  ttlMs,
} from './record.ts'

const TIME_DIGITS = 16
const TAIL_LENGTH = TIME_DIGITS + GENERATION_LENGTH

interface Member {
  readonly text: string
  /** The part before its zero byte. */
  readonly prefix: string
  readonly expiresAt: number
}

function newGeneration(): string {
  return randomBytes(6).toString('base64url')
}

/** Labels have any length and content; names have a fixed length. */
function indexName(label: string): string {
  return `menshen:label:${hash('sha256', label, 'base64url')}`
}

function indexesOf({ labels }: Entry): string[] {
  return [...new Set(labels.map(indexName))]
}

function memberOf({ key, generation, expiresAt }: Pick<RedisEntry, 'key' | 'generation' | 'expiresAt'>): string {
  return `${key}\0${digitsOf(expiresAt)}${generation}`
}

/** A time as a text that sorts like it. */
function digitsOf(time: number): string {
  return String(Math.min(Math.max(Math.ceil(time), 0), Number.MAX_SAFE_INTEGER)).padStart(TIME_DIGITS, '0')
}

function readMember(text: string): Member {
  return {
    text,
    prefix: text.slice(0, -TAIL_LENGTH - 1),
    expiresAt: Number(text.slice(-TAIL_LENGTH, -GENERATION_LENGTH)),
  }
}

/** The start of the members whose keys come after `key`. */
function startAfter(key: string | undefined): string {
  return key === undefined ? '-' : `(${key}\x01`
}

function hasSameIndexes(one: Entry, other: Entry): boolean {
  const indexed = ({ expiresAt, since, labels }: Entry) => JSON.stringify([expiresAt, since, labels])
  return indexed(one) === indexed(other)
}

// The index of the entries with `since` is a pair of sorted sets with the same members, in one slot of a cluster. One sorts by
// since, so that the newest are the last. The other sorts by expiry, so that living entries can be counted and expired ones
// dropped.

export const NEWEST: IndexPair = ['menshen:{newest}:since', 'menshen:{newest}:expiry']

/** Where a page can start. It may come from the query of a URL. */
const NEWEST_PREFIX = /^\d{16}.{1,500}$/s

/** `undefined` if the record has no `since`. */
function newestMemberOf(record: Pick<RedisEntry, 'key' | 'generation' | 'expiresAt' | 'since'>): string | undefined {
  return record.since === undefined ? undefined : digitsOf(record.since) + memberOf(record)
}

function startBefore(prefix: string | undefined): string {
  return prefix !== undefined && NEWEST_PREFIX.test(prefix) ? `(${prefix}` : '+'
}

// Adds records to their indexes and removes them.

type IndexedEntry = Entry & Pick<RedisEntry, 'key' | 'generation'>

async function addToIndexes(commands: Commands, entry: IndexedEntry, now: number): Promise<void> {
  const kept = ttlMs(entry, now)
  const newest = newestMemberOf(entry)
  await Promise.all([
    ...indexesOf(entry).map(index => commands.addMember(index, memberOf(entry), now, kept)),
    newest === undefined ? undefined : commands.addNewest(NEWEST, newest, entry.expiresAt, now, kept),
  ])
}

/** Runs in the background: an extra member does no harm. */
function removeFromIndexes(commands: Commands, entry: IndexedEntry): void {
  const newest = newestMemberOf(entry)
  for (const index of indexesOf(entry)) commands.removeMembers(index, [memberOf(entry)]).catch(() => {})
  if (newest !== undefined) dropNewest(commands, [newest])
}

function dropNewest(commands: Commands, members: readonly string[]): void {
  for (const index of NEWEST) commands.removeMembers(index, members).catch(() => {})
}

// Lists records page by page, in the order of an index.

interface IndexedPage {
  readonly entries: RedisEntry[]
  readonly next?: string
}

/** An index and the direction of reading. */
interface Walk {
  readonly start: string
  members(start: string, count: number): Promise<string[]>
  drop(members: readonly string[]): void
  /** The key in the prefix of a member. */
  keyIn(prefix: string): string
  /** Whether a record belongs to the index under this prefix. */
  includes(record: RedisEntry, prefix: string): boolean
}

/** Steps for one page. If expired members fill all of them, the page is short and the next one continues. */
const MAX_STEPS = 20

export function readLabelPage(connection: RedisConnection, { label, after, limit }: ListQuery, now: number) {
  const { commands } = connection
  const index = indexName(label)
  const walk: Walk = {
    start: startAfter(after),
    members: (start, count) => commands.members(index, start, count),
    drop: members => void commands.removeMembers(index, members).catch(() => {}),
    keyIn: prefix => prefix,
    // Compares the label, not the generation: a record that is changing at this moment already has a new generation.
    includes: record => record.labels.includes(label),
  }
  return pageOf(connection, walk, limit, now)
}

export function readNewestPage(connection: RedisConnection, { before, limit }: NewestQuery, now: number) {
  const { commands } = connection
  const walk: Walk = {
    start: startBefore(before),
    members: (start, count) => commands.membersBackwards(NEWEST[0], start, count),
    drop: members => dropNewest(commands, members),
    keyIn: prefix => prefix.slice(TIME_DIGITS),
    includes: ({ since }, prefix) => since !== undefined && prefix.startsWith(digitsOf(since)),
  }
  return pageOf(connection, walk, limit, now)
}

async function pageOf({ fetch }: RedisConnection, walk: Walk, limit: number, now: number): Promise<IndexedPage> {
  const found = new Map<string, RedisEntry>()
  let { start } = walk
  let next: string | undefined
  for (let step = 0; step < MAX_STEPS; step++) {
    const members = (await walk.members(start, limit + 1)).map(readMember)
    const expired = members.filter(({ expiresAt }) => expiresAt <= now).map(({ text }) => text)
    if (expired.length > 0) walk.drop(expired)

    const unexpired = members.filter(({ expiresAt }) => expiresAt > now)
    const records = await Promise.all(unexpired.map(({ prefix }) => fetch(walk.keyIn(prefix))))
    for (const [n, { prefix }] of unexpired.entries()) {
      const record = records[n]
      if (record && walk.includes(record, prefix) && record.expiresAt > now) found.set(prefix, record)
    }
    const entries = [...found.values()].slice(0, limit)
    const last = [...found.keys()].slice(0, limit).at(-1)
    if (found.size > limit && last !== undefined) return { entries, next: last }

    const end = members.at(-1)
    if (!end || members.length <= limit) return { entries }
    start = `(${end.text}`
    next = end.prefix
  }
  return { entries: [...found.values()], ...(next === undefined ? {} : { next }) }
}

// Changes a record in Redis together with its indexes, in the order explained at the top of this file.

interface RecordWrite {
  readonly key: string
  readonly entry: Entry
  /** The record that it replaces; absent if the key must not exist. */
  readonly old?: RedisEntry
}

/** The new version; `undefined` if the current record is not `old`. */
export async function putRecord(
  connection: RedisConnection,
  write: RecordWrite,
  now: () => number,
): Promise<number | undefined> {
  const { key, entry, old } = write
  const { commands, isCluster } = connection
  const generation = old && hasSameIndexes(old, entry) ? old.generation : newGeneration()
  const next = { ...entry, key, generation, version: nextVersion(old) }
  const record = encodeRecord(next)
  const isMoved = generation !== old?.generation
  const version = old ? encodeVersion(old.version) : Buffer.alloc(0)
  const put = (indexes?: IndexChange) =>
    connection.write(key, record, () => {
      const at = now()
      return commands.put({ name: recordName(key), version, now: at, record, ttlMs: ttlMs(entry, at), indexes })
    })
  if (isMoved && isCluster) await addToIndexes(commands, next, now())
  const written = await put(isMoved && !isCluster ? indexChange(next, old) : undefined)
  const obsolete = written ? old : next
  if (isMoved && isCluster && obsolete) removeFromIndexes(commands, obsolete)
  return written ? next.version : undefined
}

/** `undefined` if neither of them is in an index. */
function indexChange(next: IndexedEntry, old: IndexedEntry | undefined): IndexChange | undefined {
  const added = indexMembers(next)
  const removed = old ? indexMembers(old) : { labels: [], member: '' }
  const isIndexed = ({ labels, newest }: IndexMembers) => labels.length > 0 || newest !== undefined
  if (!isIndexed(added) && !isIndexed(removed)) return undefined
  return { newest: NEWEST, added, removed, expiresAt: next.expiresAt }
}

function indexMembers(entry: IndexedEntry): IndexMembers {
  return { labels: indexesOf(entry), member: memberOf(entry), newest: newestMemberOf(entry) }
}

/** The removed record, expired or not. */
export async function takeRecord(connection: RedisConnection, key: string): Promise<RedisEntry | undefined> {
  const { commands } = connection
  const old = decodeReply(key, await connection.invalidating(key, () => commands.getAndDelete(recordName(key))))
  if (old) removeFromIndexes(commands, old)
  return old
}
