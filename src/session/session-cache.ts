// Sessions that this process has opened already, so that the next request need not open them again. A bounded memory,
// never a proof: whoever takes one from here asks the store whether it still holds that version.
//
// Two queues instead of one order that every request would have to change. Who comes for the first time joins the
// newcomers, and is a regular after coming again. A hit only leaves a mark, which is looked at when there is no room any
// more: newcomers without one go first, and so a great many who come once cannot push out those who come every day.
import { getHeapStatistics } from 'node:v8'
import { cacheShares } from '../config/cache-shares.ts'
import type { Settings } from '../config/settings.ts'
import type { Identity } from './session-fields.ts'
import type { Session } from './session-record.ts'

export interface LoadedSession {
  readonly key: string
  readonly version: number
  /** When the session ends if nothing refreshes it. */
  readonly expiresAt: number
  readonly signedInAt: number
  readonly seenAt: number
  readonly session: Session
  /** What rules look at and applications are told. */
  readonly who: Identity
  /** What the applications visited last were sent: kept here, so that it goes when the session goes. */
  identityHeaders?: readonly CachedHeaders[] | undefined
}

/** The headers that tell one application who is there. */
export interface CachedHeaders {
  readonly audience: string
  /** Which names they have, the very set: it is another one when the configuration is. */
  readonly names: ReadonlySet<string>
  readonly headers: Readonly<Record<string, string>>
  readonly until: number
}

/** By ticket. */
export interface SessionCache {
  get(ticket: string): LoadedSession | undefined
  /** `bytes` is how long the session is written down. */
  set(ticket: string, loaded: LoadedSession, bytes: number): void
  delete(ticket: string): void
  clear(): void
}

interface Slot {
  readonly ticket: string
  loaded: LoadedSession
  bytes: number
  /** Used since it came into its queue. */
  isMarked: boolean
  queue: Queue
  older: Slot | undefined
  newer: Slot | undefined
}

/** Beside its texts: objects, keys, and the headers for one application. Measured with the signed JWT; without it, 900 less. */
const OVERHEAD_BYTES = 1700
/** Texts in two bytes a character, and their heads. */
const BYTES_PER_WRITTEN = 1.5
/** Of what V8 may use: on a small machine, the cache must not take what requests need. */
const SHARE_OF_HEAP = 1 / 3
const NEWCOMERS_SHARE = 0.1

/** None if it may hold nothing. */
export function createSessionCache(
  settings: Pick<Settings, 'SESSION_CACHE_SIZE' | 'SESSION_CACHE_MB'> & Partial<Pick<Settings, 'STORE'>>,
): SessionCache | undefined {
  const { SESSION_CACHE_SIZE: most } = settings
  const { sessionBytes } = cacheShares(settings)
  const mostBytes = Math.min(sessionBytes, getHeapStatistics().heap_size_limit * SHARE_OF_HEAP)
  if (most === 0 || mostBytes === 0) return undefined
  const slots = new Map<string, Slot>()
  let newcomers = createQueue()
  let regulars = createQueue()

  function isOver(share: number, count: number, bytes: number): boolean {
    return count > most * share || bytes > mostBytes * share
  }

  function makeRoom(): void {
    while (isOver(1, slots.size, newcomers.bytes + regulars.bytes)) {
      const hasManyNewcomers = isOver(NEWCOMERS_SHARE, newcomers.count, newcomers.bytes)
      const slot = (hasManyNewcomers ? newcomers.oldest : regulars.oldest) ?? newcomers.oldest
      if (!slot) return
      slot.queue.remove(slot)
      if (slot.isMarked) regulars.add(slot)
      else slots.delete(slot.ticket)
    }
  }

  function drop(ticket: string): void {
    const slot = slots.get(ticket)
    slot?.queue.remove(slot)
    slots.delete(ticket)
  }

  return {
    get(ticket) {
      const slot = slots.get(ticket)
      if (slot) slot.isMarked = true
      return slot?.loaded
    },

    set(ticket, loaded, length) {
      const queue = slots.get(ticket)?.queue ?? newcomers
      drop(ticket)
      const bytes = OVERHEAD_BYTES + length * BYTES_PER_WRITTEN
      const slot = { ticket, loaded, bytes, isMarked: false, queue, older: undefined, newer: undefined }
      slots.set(ticket, slot)
      queue.add(slot)
      makeRoom()
    },

    delete: drop,

    clear() {
      slots.clear()
      newcomers = createQueue()
      regulars = createQueue()
    },
  }
}

type Queue = ReturnType<typeof createQueue>

/** First in, first out. A list of its own: a `Map` finds its first entry only behind all that were taken out before. */
function createQueue() {
  let oldest: Slot | undefined
  let newest: Slot | undefined
  let count = 0
  let bytes = 0
  const queue = {
    get oldest() {
      return oldest
    },
    get count() {
      return count
    },
    get bytes() {
      return bytes
    },
    add(slot: Slot): void {
      slot.isMarked = false
      slot.queue = queue
      slot.older = newest
      slot.newer = undefined
      if (newest) newest.newer = slot
      else oldest = slot
      newest = slot
      count++
      bytes += slot.bytes
    },
    remove(slot: Slot): void {
      const { older, newer } = slot
      if (older) older.newer = newer
      else oldest = newer
      if (newer) newer.older = older
      else newest = older
      count--
      bytes -= slot.bytes
    },
  }
  return queue
}
