// Lists records page by page, as their indexes have them.

import type { ListQuery, NewestQuery } from '../../store.ts'
import type { Connection } from '../connection.ts'
import type { Indexed } from '../redis-record.ts'
import { dropNewest } from './index-writes.ts'
import { indexName, readMember, startAfter } from './label-index.ts'
import { isAtPlace, keyAtPlace, NEWEST, startBefore } from './newest-index.ts'

interface IndexedPage {
  readonly entries: Indexed[]
  readonly next?: string
}

/** An index and the way through it. A member's place is what it has before its expiry. */
interface Walk {
  readonly start: string
  members(start: string, count: number): Promise<string[]>
  drop(members: readonly string[]): void
  keyAt(place: string): string
  /** Whether a record belongs where it was found. */
  includes(record: Indexed, place: string): boolean
}

/** So many steps for one page: if expired members fill them all, the page is short, and the next one goes on. */
const MOST_STEPS = 20

export function listPage(connection: Connection, { label, after, limit }: ListQuery, now: number) {
  const { commands } = connection
  const index = indexName(label)
  const walk: Walk = {
    start: startAfter(after),
    members: (start, count) => commands.members(index, start, count),
    drop: members => void commands.removeMembers(index, members).catch(() => {}),
    keyAt: place => place,
    // By its label and not by its generation: a record that changes at this very moment has another one already.
    includes: record => record.labels.includes(label),
  }
  return pageOf(connection, walk, limit, now)
}

export function newestPage(connection: Connection, { before, limit }: NewestQuery, now: number) {
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

async function pageOf({ fetch }: Connection, walk: Walk, limit: number, now: number): Promise<IndexedPage> {
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
