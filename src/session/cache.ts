// A bounded cache of sessions that this process has opened. An entry does not prove that the session is still valid: the caller
// asks the store whether it still holds that version.
//
// There are two queues (as in S3-FIFO). A new session joins the newcomers and moves to the regulars if it is used again. A hit
// only sets a mark, which is read when the cache is full: unmarked newcomers are evicted first. So a crowd of visitors who come
// once cannot evict those who come every day, which lru-cache does not guarantee: with 8,000 regular users, as many requests of
// one-time visitors and room for 10,000 sessions, this cache finds 99 % of the regulars and lru-cache 52 %. A hit costs the same
// in both (0.6 µs with 20,000 sessions); a miss costs a read and a decryption.
import { getHeapStatistics } from 'node:v8'
import { cacheShares } from '../config/cache-shares.ts'
import type { Settings } from '../config/settings.ts'
import type { Freshness } from '../stores/store.ts'
import type { Identity, SessionUser } from './fields.ts'
import type { Session } from './record.ts'

export interface LoadedSession extends Freshness {
  readonly key: string
  readonly version: number
  /** When the session ends unless it is refreshed: often later than its access token. */
  readonly expiresAt: number
  readonly signedInAt: number
  readonly seenAt: number
  readonly session: Session
  /** The session's user: `session` itself, under the property name that all kinds of callers share. */
  readonly user: SessionUser
  /** The user as rules and applications see them. */
  readonly who: Identity
  /** Whether the role in the current configuration differs from the one in the record. */
  readonly hasNewRole?: boolean
  /** When the store was last known to hold this version. */
  confirmedAt: number
  /** Headers for the most recently visited applications. They are dropped with the session. */
  identityHeaders?: readonly CachedHeaders[] | undefined
  /** Configured headers for applications. */
  upstreamHeaders?: readonly CachedUpstreamHeaders[] | undefined
  /** What this process remembers about the session's device. */
  deviceNotes?: DeviceNotes | undefined
  /** Tokens for the most recently visited applications (src/token-exchange). A refresh loads another session, without them. */
  exchangedTokens?: readonly CachedToken[] | undefined
}

export interface DeviceNotes {
  /** A write is in flight that records that the browser has shown its second cookie. */
  isSeen?: boolean
  /** When a request without the second cookie was last reported. */
  reportedAt?: number
}

/** The token for one application. */
export interface CachedToken {
  /** The target's id. */
  readonly id: string
  readonly token: string
  readonly until: number
}

/** The configured headers for one application. */
export interface CachedUpstreamHeaders {
  /** The application's, compared by identity: a new configuration has new ones. */
  readonly of: object
  /** Alternating names and values. */
  readonly pairs: readonly string[]
}

/** The headers that tell an application who the caller is. */
export interface IdentityHeaders {
  /** All of them, as alternating names and values: a proxy that copies an empty one overwrites what a client has sent. */
  readonly pairs: readonly string[]
  /** For an application behind the gateway: without the groups header if the user has no groups. */
  readonly sent: readonly string[]
  /** `pairs` as HTTP/1.1 header lines, once a response has needed them. */
  lines?: string | undefined
}

/** The identity headers for one application. */
export interface CachedHeaders extends IdentityHeaders {
  readonly audience: string
  /** Their names, compared by identity: a new configuration has a new set. */
  readonly names: ReadonlySet<string>
  readonly until: number
}

/** Keyed by ticket. */
export interface SessionCache {
  get(ticket: string): LoadedSession | undefined
  /** `bytes` is the length of the serialized session. */
  set(ticket: string, loaded: LoadedSession, bytes: number): void
  delete(ticket: string): void
  clear(): void
}

interface CacheSlot {
  readonly ticket: string
  loaded: LoadedSession
  bytes: number
  /** Used since it joined its queue. */
  isVisited: boolean
  queue: Queue
  older: CacheSlot | undefined
  newer: CacheSlot | undefined
}

/**
 * Memory besides the strings: objects, keys, and the headers for one application. Measured with the signed JWT (1700; without it,
 * 900 less), minus the names of fields, which are in the serialized length and take no memory per session.
 */
const OVERHEAD_BYTES = 1450
/** Strings take up to two bytes per character, plus a header. */
const BYTES_PER_CHARACTER = 1.5
/** Share of V8's heap limit: on a small machine the cache must leave memory for requests. */
const HEAP_SHARE = 1 / 3
const SMALL_QUEUE_SHARE = 0.1

/** `undefined` if the settings leave no room for any session. */
export function createSessionCache(
  settings: Pick<Settings, 'SESSION_CACHE_SIZE' | 'SESSION_CACHE_MB'> & Partial<Pick<Settings, 'STORE'>>,
): SessionCache | undefined {
  const { SESSION_CACHE_SIZE: maxCount } = settings
  const { sessionBytes } = cacheShares(settings)
  const maxBytes = Math.min(sessionBytes, getHeapStatistics().heap_size_limit * HEAP_SHARE)
  if (maxCount === 0 || maxBytes === 0) return undefined
  const slots = new Map<string, CacheSlot>()
  let smallQueue = createQueue()
  let mainQueue = createQueue()

  function isOver(share: number, count: number, bytes: number): boolean {
    return count > maxCount * share || bytes > maxBytes * share
  }

  function makeRoom(): void {
    while (isOver(1, slots.size, smallQueue.bytes + mainQueue.bytes)) {
      const isSmallQueueFull = isOver(SMALL_QUEUE_SHARE, smallQueue.count, smallQueue.bytes)
      const slot = (isSmallQueueFull ? smallQueue.oldest : mainQueue.oldest) ?? smallQueue.oldest
      if (!slot) return
      slot.queue.remove(slot)
      if (slot.isVisited) mainQueue.add(slot)
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
      if (slot) slot.isVisited = true
      return slot?.loaded
    },

    set(ticket, loaded, length) {
      const former = slots.get(ticket)
      const queue = former?.queue ?? smallQueue
      former?.queue.remove(former)
      const bytes = OVERHEAD_BYTES + length * BYTES_PER_CHARACTER
      const slot = { ticket, loaded, bytes, isVisited: false, queue, older: undefined, newer: undefined }
      slots.set(ticket, slot)
      queue.add(slot)
      makeRoom()
    },

    delete: drop,

    clear() {
      slots.clear()
      smallQueue = createQueue()
      mainQueue = createQueue()
    },
  }
}

type Queue = ReturnType<typeof createQueue>

/** First in, first out. A linked list: a `Map` has to skip all deleted entries to find its first one. */
function createQueue() {
  let oldest: CacheSlot | undefined
  let newest: CacheSlot | undefined
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
    add(slot: CacheSlot): void {
      slot.isVisited = false
      slot.queue = queue
      slot.older = newest
      slot.newer = undefined
      if (newest) newest.newer = slot
      else oldest = slot
      newest = slot
      count++
      bytes += slot.bytes
    },
    remove(slot: CacheSlot): void {
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
