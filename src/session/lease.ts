// A lease in the store: of all requests, processes and machines that want to refresh a session, one does it. Its holder renews
// it while the work takes longer, and can check whether it still has it. It expires if its holder dies.

import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Store } from '../stores/store.ts'
import { shortKey } from './session-fields.ts'

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
  /** When the current lease expires; `undefined` if there is none. */
  endOf(name: string): Promise<number | undefined>
  /** Resolves when all released leases are given back. */
  settle(): Promise<void>
}

const NOTHING = new Uint8Array()

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  const releasing = new Map<string, Promise<void>>()

  /** Replaces only our own version: a key never has the same version twice. */
  async function giveBack(name: string, latest: Promise<number>): Promise<void> {
    try {
      const version = await latest
      await store.replace(keyOf(name), { value: NOTHING, expiresAt: now(), labels: [] }, version)
    } catch (error) {
      report('lease_not_released', { ...errorFields(error), session: shortKey(name) })
    }
  }

  /** The lease of another process stays as it is. */
  async function renew(key: string, version: number): Promise<number> {
    return (await store.replace(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] }, version)) ?? version
  }

  return {
    async take(name) {
      // Otherwise our own lease would look like that of another process.
      await releasing.get(name)
      const key = keyOf(name)
      const version = await store.create(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] })
      if (version === undefined) return undefined
      let latest = Promise.resolve(version)
      // A long refresh, such as one that begins with discovery, must not be done twice. A lease that cannot be renewed expires.
      const renewal = setInterval(() => {
        latest = latest.then(version => renew(key, version).catch(() => version))
      }, lifeMs / 3).unref()
      return {
        async isOurs() {
          const version = await latest
          return store.holds(key, version) || (await store.read(key))?.version === version
        },
        release() {
          clearInterval(renewal)
          const given = giveBack(name, latest).finally(() => releasing.delete(name))
          releasing.set(name, given)
        },
        letExpire: () => clearInterval(renewal),
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
    async settle() {
      await Promise.all(releasing.values())
    },
  }
}
