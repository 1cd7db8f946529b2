// Keeps records in their indexes, and lists them from there.

import type { Entry, ListQuery } from '../store.ts'
import type { Commands } from './commands.ts'
import type { Connection } from './connection.ts'
import { indexesOf, indexName, memberOf, readMember, startAfter } from './label-index.ts'
import { type Indexed, keptMs } from './redis-record.ts'

type IndexPlace = Entry & Pick<Indexed, 'key' | 'generation'>

/** So many steps for one page: if expired members fill them all, the page is short, and the next one goes on. */
const MOST_STEPS = 20

export async function addToIndexes(commands: Commands, place: IndexPlace, now: number): Promise<void> {
  await Promise.all(indexesOf(place).map(index => commands.addMember(index, memberOf(place), now, keptMs(place, now))))
}

/** Nobody waits for it: a member too many does no harm. */
export function removeFromIndexes(commands: Commands, place: IndexPlace): void {
  for (const index of indexesOf(place)) commands.removeMembers(index, [memberOf(place)]).catch(() => {})
}

export async function listPage(
  { commands, fetch }: Connection,
  { label, after, limit }: ListQuery,
  now: number,
): Promise<{ entries: Indexed[]; next?: string }> {
  const index = indexName(label)
  const found = new Map<string, Indexed>()
  let start = startAfter(after)
  let next = after
  for (let step = 0; step < MOST_STEPS; step++) {
    const members = (await commands.members(index, start, limit + 1)).map(readMember)
    const expired = members.filter(({ expiresAt }) => expiresAt <= now).map(({ text }) => text)
    if (expired.length > 0) commands.removeMembers(index, expired).catch(() => {})

    const living = members.filter(({ expiresAt }) => expiresAt > now)
    const records = await Promise.all(living.map(({ key }) => fetch(key)))
    // By its label and not by its generation: a record that changes at this very moment has another one already.
    for (const record of records)
      if (record?.labels.includes(label) && record.expiresAt > now) found.set(record.key, record)
    const entries = [...found.values()].slice(0, limit)
    const last = entries.at(-1)
    if (found.size > limit && last) return { entries, next: last.key }

    const end = members.at(-1)
    if (!end || members.length <= limit) return { entries }
    start = `(${end.text}`
    next = end.key
  }
  return { entries: [...found.values()], ...(next === undefined ? {} : { next }) }
}
