// Simulates which share of the requests finds its session in the cache of the process that it reaches, with users who come at
// random, and with changes that make every process forget a session.

import type { Random } from './random.ts'

interface CacheLoad {
  /** Users who come to this process, and visits of each of them per second. */
  readonly users: number
  readonly visitsOfOne: number
  /** How often a session changes elsewhere, per second. */
  readonly changesOfOne: number
  /** How many sessions the process keeps: the most recently used ones. */
  readonly capacity: number
}

/** More of them would show the same: users are alike. */
const MAX_USERS = 2000
const VISITS_OF_ONE = 30

export function hitShare({ users, visitsOfOne, changesOfOne, capacity }: CacheLoad, random: Random): number {
  const simulated = Math.min(users, MAX_USERS)
  const room = Math.floor((capacity * simulated) / users)
  /** Keyed by user: the time at which the session changes next. In the order of use. */
  const cached = new Map<number, number>()
  const visits = simulated * VISITS_OF_ONE
  let now = 0
  let hits = 0
  let counted = 0
  for (let visit = 0; visit < visits; visit++) {
    now += random.wait(simulated * visitsOfOne)
    const user = Math.floor(random.next() * simulated)
    const changesAt = cached.get(user) ?? 0
    const isHit = changesAt > now
    cached.delete(user)
    cached.set(user, isHit ? changesAt : now + random.wait(changesOfOne))
    if (cached.size > room) cached.delete(cached.keys().next().value ?? user)
    // At first the cache is empty.
    if (visit < visits / 2) continue
    counted++
    if (isHit) hits++
  }
  return hits / counted
}
