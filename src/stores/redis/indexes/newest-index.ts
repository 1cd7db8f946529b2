// The index of the entries with `since`. It is a pair of sorted sets with the same members:
//
//   16 digits of since, and what a member of label-index.ts has
//
// One has them in their order, so that the newest are its last; the other by their expiry, so that those that live can be
// counted and those that do not can be dropped. Both have their place in one slot of a cluster. For what a member counts,
// see label-index.ts.

import type { IndexPair } from '../commands.ts'
import type { Indexed } from '../redis-record.ts'
import { digitsOf, memberOf, TIME_DIGITS } from './label-index.ts'

export const NEWEST: IndexPair = ['menshen:{newest}:since', 'menshen:{newest}:expiry']

/** What a page can go on behind: the beginning of a member. It may come from an address. */
const PLACE = /^\d{16}.{1,500}$/s

/** `undefined` if the record has no place there. */
export function newestMemberOf(
  record: Pick<Indexed, 'key' | 'generation' | 'expiresAt' | 'since'>,
): string | undefined {
  return record.since === undefined ? undefined : digitsOf(record.since) + memberOf(record)
}

/** Of what label-index.ts takes for the key of a member. */
export function keyAtPlace(place: string): string {
  return place.slice(TIME_DIGITS)
}

export function isAtPlace({ since }: Indexed, place: string): boolean {
  return since !== undefined && place.startsWith(digitsOf(since))
}

export function startBefore(place: string | undefined): string {
  return place !== undefined && PLACE.test(place) ? `(${place}` : '+'
}
