// A lease in the store: of all requests, processes and machines that want to do the same work, one does it and the others wait
// for its result. The holder renews the lease while the work takes longer. If the holder dies, the lease expires. For example:
//
//   0.0 s  A takes the lease, and asks the provider
//   0.1 s  B cannot take it, and waits: it looks for the result every 100 ms
//   0.4 s  A saves the result and releases the lease     B sees the result: `done`
//          or A fails and releases the lease             B sees neither result nor lease: `failed`, the same for all who wait
//          or A dies; its lease expires 15 s later       B sees that the lease has expired: `expired`, and takes it
//
// A call to the store can fail although the store executes it, even later. A lease that may have been taken or kept in this way has
// no holder, so it is given back as soon as the store answers again.

import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Store } from '../stores/store.ts'
import { atMost } from '../util/recent.ts'
import { shortKey } from './fields.ts'

export interface Lease {
  isOurs(): Promise<boolean>
  /** Gives the lease back in the background, unless another process has it by now. */
  release(): void
  /** Lets the lease expire. */
  letExpire(): void
}

export interface Leases {
  /** `undefined` if another process has it. */
  take(name: string): Promise<Lease | undefined>
  /** Waits while another process has the lease: until its work is done, or the lease is free. */
  waitForHolder(name: string, isDone: () => Promise<boolean>): Promise<HolderResult>
  /** Resolves when all released leases are given back. */
  settle(): Promise<void>
}

type HolderResult = 'done' | 'failed' | 'expired'

const ID_BYTES = 16
const POLL_MS = 100
/** How long after a failed call the store is first asked whether it has executed it; each time after that is twice as long. */
const FIRST_LOOK_MS = 250
const MAX_LOST = 10_000
/** The end of a lease that is given back: past for every clock, also for one that is behind or that is set back later. */
const RELEASED = 0
/** How much longer a lease lives than the slowest call and its retries. */
const MARGIN_MS = 5000

/** The life of a lease for a call to a provider: longer than the call and its retries. */
export function leaseLife(providerTimeoutMs: number): number {
  return providerTimeoutMs * 2 + MARGIN_MS
}

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  const releasing = new Map<string, Promise<void>>()
  /** The ids of leases without a holder that the store may have. */
  const lost = new LRUCache<string, Uint8Array>(atMost(MAX_LOST))

  const entryOf = (id: Uint8Array, expiresAt: number) => ({ value: id, expiresAt, labels: [] })

  /** Replaces only our own version: a key never has the same version twice. */
  async function giveBack(name: string, id: Uint8Array, latest: Promise<number>): Promise<void> {
    try {
      const version = await latest
      await store.replace(keyOf(name), entryOf(id, RELEASED), version)
    } catch (error) {
      report('lease_not_released', { ...errorFields(error), session: shortKey(name) })
      lose(name, id)
    }
  }

  /** The lease of another process stays as it is. */
  async function renew(key: string, id: Uint8Array, version: number): Promise<number> {
    return (await store.replace(key, entryOf(id, now() + lifeMs), version)) ?? version
  }

  function lose(name: string, id: Uint8Array): void {
    lost.set(name, id)
    void lookForLost(name, id)
  }

  async function lookForLost(name: string, id: Uint8Array): Promise<void> {
    for (let wait = FIRST_LOOK_MS; wait < lifeMs; wait *= 2) {
      await pause(wait, undefined, { ref: false })
      if (lost.get(name) !== id) return
      await giveBackLost(name, id).catch(() => {})
    }
    if (lost.get(name) === id) lost.delete(name)
  }

  async function giveBackLost(name: string, id: Uint8Array): Promise<void> {
    const stored = await store.readLatest(keyOf(name))
    if (!stored || Buffer.compare(stored.value, id) !== 0) return
    await store.replace(keyOf(name), entryOf(id, RELEASED), stored.version)
    lost.delete(name)
  }

  async function create(name: string, id: Uint8Array): Promise<number | undefined> {
    try {
      return await store.create(keyOf(name), entryOf(id, now() + lifeMs))
    } catch (error) {
      lose(name, id)
      throw error
    }
  }

  /** When the current lease expires; `undefined` if there is none. */
  async function endOf(name: string): Promise<number | undefined> {
    return (await store.read(keyOf(name)))?.expiresAt
  }

  return {
    async take(name) {
      // Otherwise our own lease would look like that of another process.
      await releasing.get(name)
      const key = keyOf(name)
      const id = randomBytes(ID_BYTES)
      const lostId = lost.get(name)
      if (lostId) await giveBackLost(name, lostId)
      const version = await create(name, id)
      if (version === undefined) return undefined
      let latest = Promise.resolve(version)
      // A long refresh, such as one that begins with discovery, must not be done twice. A lease that cannot be renewed expires.
      const renewal = setInterval(() => {
        latest = latest.then(version => renew(key, id, version).catch(() => version))
      }, lifeMs / 3).unref()
      return {
        async isOurs() {
          const version = await latest
          return store.isCurrent(key, version) || (await store.read(key))?.version === version
        },
        release() {
          clearInterval(renewal)
          const released = giveBack(name, id, latest).finally(() => releasing.delete(name))
          releasing.set(name, released)
        },
        letExpire: () => clearInterval(renewal),
      }
    },

    async waitForHolder(name, isDone) {
      let endsAt = (await endOf(name)) ?? 0
      for (;;) {
        await pause(POLL_MS)
        if (await isDone()) return 'done'
        const end = await endOf(name)
        if (end === undefined) {
          const isReleased = now() < endsAt
          // The holder may have finished between the two reads.
          if (await isDone()) return 'done'
          return isReleased ? 'failed' : 'expired'
        }
        endsAt = end
      }
    },

    async settle() {
      await Promise.all(releasing.values())
    },
  }
}
