// A lease in the store: of all requests, processes and machines that want to do something for a session, one does it.
// Its holder renews it while the work takes longer, and can tell whether it still has it. It runs out if its holder dies.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import type { Store } from '../../stores/store.ts'
import { shortKey } from '../session-facts.ts'

export interface Lease {
  isOurs(): Promise<boolean>
  /** Gives it back, unless somebody else has it by now. Nobody has to wait for that. */
  release(): void
  /** Leaves it to run out by itself. */
  leave(): void
}

export interface Leases {
  /** `undefined` if somebody else has it. */
  take(name: string): Promise<Lease | undefined>
  /** When the present one runs out; `undefined` if nobody has it. */
  endOf(name: string): Promise<number | undefined>
  /** Resolves when those that were released are given back. */
  settle(): Promise<void>
}

const NOTHING = new Uint8Array()

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  const releasing = new Map<string, Promise<void>>()

  /** What has expired is absent, and only our own version is replaced: a key never has the same version twice. */
  async function giveBack(name: string, latest: Promise<number>): Promise<void> {
    try {
      const version = await latest
      await store.replace(keyOf(name), { value: NOTHING, expiresAt: now(), labels: [] }, version)
    } catch (error) {
      report('lease_not_released', { ...factsOf(error), session: shortKey(name) })
    }
  }

  /** Somebody else's stays as it is. */
  async function renew(key: string, version: number): Promise<number> {
    return (await store.replace(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] }, version)) ?? version
  }

  return {
    async take(name) {
      // Otherwise we would take our own for somebody else's.
      await releasing.get(name)
      const key = keyOf(name)
      const version = await store.create(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] })
      if (version === undefined) return undefined
      let latest = Promise.resolve(version)
      // What takes long, such as a provider that has to be discovered first, must not be done by somebody else as well. One that
      // could not be renewed runs out.
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
        leave: () => clearInterval(renewal),
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
    async settle() {
      await Promise.all(releasing.values())
    },
  }
}
