// A lease in the store: of all requests, processes and machines that want to do something for a session, one does it.
// It runs out by itself if its holder dies, and its holder can tell whether it still has it.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import type { Store } from '../../stores/store.ts'
import { shortKey } from '../session-facts.ts'

export interface Lease {
  isOurs(): Promise<boolean>
  /** Gives it back, unless somebody else has it by now. Nobody has to wait for that. */
  release(): void
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
  async function giveBack(name: string, version: number): Promise<void> {
    try {
      await store.replace(keyOf(name), { value: NOTHING, expiresAt: now(), labels: [] }, version)
    } catch (error) {
      report('lease_not_released', { ...factsOf(error), session: shortKey(name) })
    }
  }

  return {
    async take(name) {
      // Otherwise we would take our own for somebody else's.
      await releasing.get(name)
      const key = keyOf(name)
      const version = await store.create(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] })
      if (version === undefined) return undefined
      return {
        isOurs: async () => store.holds(key, version) || (await store.read(key))?.version === version,
        release() {
          const given = giveBack(name, version).finally(() => releasing.delete(name))
          releasing.set(name, given)
        },
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
    async settle() {
      await Promise.all(releasing.values())
    },
  }
}
