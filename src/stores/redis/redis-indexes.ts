// The indexes by which entries are listed, one per label. An index is a sorted set whose members are in the order of their
// keys:
//
//   key, a zero byte, 16 digits of expiry, 8 characters of generation
//
// A single server writes a record and its indexes in one step. In a cluster that is impossible: a record is added to its indexes
// before it is written and removed after it is gone, and a member is valid only while the record has its label. Each attempt to
// write has a new generation, so that a loser removes only its own members. Members that a crash leaves behind are dropped after
// their expiry.

import { hash, randomBytes } from 'node:crypto'
import { type Entry, type ListQuery, type NewestQuery, nextVersion } from '../store.ts'
import type { Commands, IndexChange, IndexMembers, IndexPair } from './redis-commands.ts'
import type { RedisConnection } from './redis-connection.ts'
import {
  decodeReply,
  encodeRecord,
  encodeVersion,
  GENERATION_LENGTH,
  type Indexed,
  keptMs,
  recordName,
} from './redis-record.ts'

export const TIME_DIGITS = 16
const TAIL_LENGTH = TIME_DIGITS + GENERATION_LENGTH

export interface Member {
  readonly text: string
  readonly key: string
  readonly expiresAt: number
  readonly generation: string
}

export function newGeneration(): string {
  return randomBytes(6).toString('base64url')
}

/** Labels have any length and content; names have a fixed length. */
export function indexName(label: string): string {
  return `menshen:label:${hash('sha256', label, 'base64url')}`
}

export function indexesOf({ labels }: Entry): string[] {
  return [...new Set(labels.map(indexName))]
}

export function memberOf({ key, generation, expiresAt }: Pick<Indexed, 'key' | 'generation' | 'expiresAt'>): string {
  return `${key}\0${digitsOf(expiresAt)}${generation}`
}

/** A time as a text that sorts like it. */
export function digitsOf(time: number): string {
  return String(Math.min(Math.max(Math.ceil(time), 0), Number.MAX_SAFE_INTEGER)).padStart(TIME_DIGITS, '0')
}

export function readMember(text: string): Member {
  const tail = text.slice(-TAIL_LENGTH)
  return {
    text,
    key: text.slice(0, -TAIL_LENGTH - 1),
    expiresAt: Number(tail.slice(0, TIME_DIGITS)),
    generation: tail.slice(TIME_DIGITS),
  }
}

/** The start of the members whose keys come after `key`. */
export function startAfter(key: string | undefined): string {
  return key === undefined ? '-' : `(${key}\x01`
}

export function isIndexedAlike(one: Entry, other: Entry): boolean {
  const indexed = ({ expiresAt, since, labels }: Entry) => JSON.stringify([expiresAt, since, labels])
  return indexed(one) === indexed(other)
}

// The index of the entries with `since`. It is a pair of sorted sets with the same members:
//
//   16 digits of since, followed by a member as above
//
// One sorts by time, so that the newest are the last. The other sorts by expiry, so that living entries can be counted and expired
// ones dropped. Both are in one slot of a cluster. A member is valid under the same condition as above.

export const NEWEST: IndexPair = ['menshen:{newest}:since', 'menshen:{newest}:expiry']

/** Where a page can start: the beginning of a member. It may come from the query of a URL. */
const PLACE = /^\d{16}.{1,500}$/s

/** `undefined` if the record has no `since`. */
export function newestMemberOf(
  record: Pick<Indexed, 'key' | 'generation' | 'expiresAt' | 'since'>,
): string | undefined {
  return record.since === undefined ? undefined : digitsOf(record.since) + memberOf(record)
}

/** The key of the record behind a member of this index. */
export function keyAtPlace(place: string): string {
  return place.slice(TIME_DIGITS)
}

export function isAtPlace({ since }: Indexed, place: string): boolean {
  return since !== undefined && place.startsWith(digitsOf(since))
}

export function startBefore(place: string | undefined): string {
  return place !== undefined && PLACE.test(place) ? `(${place}` : '+'
}

// Adds records to their indexes and removes them.

export type IndexPlace = Entry & Pick<Indexed, 'key' | 'generation'>

export async function addToIndexes(commands: Commands, place: IndexPlace, now: number): Promise<void> {
  const kept = keptMs(place, now)
  const newest = newestMemberOf(place)
  await Promise.all([
    ...indexesOf(place).map(index => commands.addMember(index, memberOf(place), now, kept)),
    newest === undefined ? undefined : commands.addNewest(NEWEST, newest, place.expiresAt, now, kept),
  ])
}

/** Runs in the background: an extra member does no harm. */
export function removeFromIndexes(commands: Commands, place: IndexPlace): void {
  const newest = newestMemberOf(place)
  for (const index of indexesOf(place)) commands.removeMembers(index, [memberOf(place)]).catch(() => {})
  if (newest !== undefined) dropNewest(commands, [newest])
}

export function dropNewest(commands: Commands, members: readonly string[]): void {
  for (const index of NEWEST) commands.removeMembers(index, members).catch(() => {})
}

// Lists records page by page, in the order of an index.

interface IndexedPage {
  readonly entries: Indexed[]
  readonly next?: string
}

/** An index and the direction of reading. A member's place is the part before its expiry. */
interface Walk {
  readonly start: string
  members(start: string, count: number): Promise<string[]>
  drop(members: readonly string[]): void
  keyAt(place: string): string
  /** Whether the record belongs to the index at this place. */
  includes(record: Indexed, place: string): boolean
}

/** Steps for one page. If expired members fill all of them, the page is short and the next one continues. */
const MOST_STEPS = 20

export function readLabelPage(connection: RedisConnection, { label, after, limit }: ListQuery, now: number) {
  const { commands } = connection
  const index = indexName(label)
  const walk: Walk = {
    start: startAfter(after),
    members: (start, count) => commands.members(index, start, count),
    drop: members => void commands.removeMembers(index, members).catch(() => {}),
    keyAt: place => place,
    // By its label, not by its generation: a record that is changing at this moment has a new generation already.
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
    keyAt: keyAtPlace,
    includes: isAtPlace,
  }
  return pageOf(connection, walk, limit, now)
}

async function pageOf({ fetch }: RedisConnection, walk: Walk, limit: number, now: number): Promise<IndexedPage> {
  const found = new Map<string, Indexed>()
  let { start } = walk
  let next: string | undefined
  for (let step = 0; step < MOST_STEPS; step++) {
    const members = (await walk.members(start, limit + 1)).map(readMember)
    const expired = members.filter(({ expiresAt }) => expiresAt <= now).map(({ text }) => text)
    if (expired.length > 0) walk.drop(expired)

    const living = members.filter(({ expiresAt }) => expiresAt > now)
    const records = await Promise.all(living.map(({ key: place }) => fetch(walk.keyAt(place))))
    for (const [n, { key: place }] of living.entries()) {
      const record = records[n]
      if (record && walk.includes(record, place) && record.expiresAt > now) found.set(place, record)
    }
    const places = [...found.keys()].slice(0, limit)
    const entries = [...found.values()].slice(0, limit)
    const last = places.at(-1)
    if (found.size > limit && last !== undefined) return { entries, next: last }

    const end = members.at(-1)
    if (!end || members.length <= limit) return { entries }
    start = `(${end.text}`
    next = end.key
  }
  return { entries: [...found.values()], ...(next === undefined ? {} : { next }) }
}

// Changes a record in Redis together with its indexes, in the order that the top of this file explains.

interface RecordWrite {
  readonly key: string
  readonly entry: Entry
  /** The record that it replaces; absent if the key must not exist. */
  readonly old?: Indexed
}

/** The new version; `undefined` if the current record is not `old`. */
export async function putRecord(
  connection: RedisConnection,
  write: RecordWrite,
  now: () => number,
): Promise<number | undefined> {
  const { key, entry, old } = write
  const { commands, isCluster } = connection
  const generation = old && isIndexedAlike(old, entry) ? old.generation : newGeneration()
  const next = { ...entry, key, generation, version: nextVersion(old) }
  const record = encodeRecord(next)
  const isMoved = generation !== old?.generation
  const version = old ? encodeVersion(old.version) : Buffer.alloc(0)
  const put = (indexes?: IndexChange) =>
    connection.write(key, record, () => {
      const at = now()
      return commands.put({ name: recordName(key), version, now: at, record, keptMs: keptMs(entry, at), indexes })
    })
  if (isMoved && isCluster) await addToIndexes(commands, next, now())
  const written = await put(isMoved && !isCluster ? indexChange(next, old) : undefined)
  const obsolete = written ? old : next
  if (isMoved && isCluster && obsolete) removeFromIndexes(commands, obsolete)
  return written ? next.version : undefined
}

/** `undefined` if neither of them is in an index. */
function indexChange(next: IndexPlace, old: IndexPlace | undefined): IndexChange | undefined {
  const added = indexMembers(next)
  const removed = old ? indexMembers(old) : { labels: [], member: '' }
  const isIndexed = ({ labels, newest }: IndexMembers) => labels.length > 0 || newest !== undefined
  if (!isIndexed(added) && !isIndexed(removed)) return undefined
  return { newest: NEWEST, added, removed, expiresAt: next.expiresAt }
}

function indexMembers(place: IndexPlace): IndexMembers {
  return { labels: indexesOf(place), member: memberOf(place), newest: newestMemberOf(place) }
}

/** The removed record, expired or not. */
export async function takeRecord(connection: RedisConnection, key: string): Promise<Indexed | undefined> {
  const { commands } = connection
  const old = decodeReply(key, await connection.forgetting(key, () => commands.getAndDelete(recordName(key))))
  if (old) removeFromIndexes(commands, old)
  return old
}
