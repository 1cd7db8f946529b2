// Keeps records in their indexes.

import type { Entry } from '../../store.ts'
import type { Commands } from '../commands.ts'
import { type Indexed, keptMs } from '../redis-record.ts'
import { indexesOf, memberOf } from './label-index.ts'
import { NEWEST, newestMemberOf } from './newest-index.ts'

export type IndexPlace = Entry & Pick<Indexed, 'key' | 'generation'>

export async function addToIndexes(commands: Commands, place: IndexPlace, now: number): Promise<void> {
  const kept = keptMs(place, now)
  const newest = newestMemberOf(place)
  await Promise.all([
    ...indexesOf(place).map(index => commands.addMember(index, memberOf(place), now, kept)),
    newest === undefined ? undefined : commands.addNewest(NEWEST, newest, place.expiresAt, now, kept),
  ])
}

/** Nobody waits for it: a member too many does no harm. */
export function removeFromIndexes(commands: Commands, place: IndexPlace): void {
  const newest = newestMemberOf(place)
  for (const index of indexesOf(place)) commands.removeMembers(index, [memberOf(place)]).catch(() => {})
  if (newest !== undefined) dropNewest(commands, [newest])
}

export function dropNewest(commands: Commands, members: readonly string[]): void {
  for (const index of NEWEST) commands.removeMembers(index, members).catch(() => {})
}
