// A lease in the store: of all requests, processes and machines that want to do something for a session, one does it.
// It runs out by itself if its holder dies, and its holder can tell whether it still has it.
import { randomBytes } from 'node:crypto'
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import type { Store, Stored } from '../../stores/store.ts'
import { shortKey } from '../session-facts.ts'

export interface Lease {
  isOurs(): Promise<boolean>
  /** Gives it back, unless somebody else has it by now. */
  release(): Promise<void>
}

export interface Leases {
  /** `undefined` if somebody else has it. */
  take(name: string): Promise<Lease | undefined>
  /** When the present one runs out; `undefined` if nobody has it. */
  endOf(name: string): Promise<number | undefined>
}

const OWNER_BYTES = 16

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  return {
    async take(name) {
      const key = keyOf(name)
      // Whoever is paused from here on finds another owner's name, and not a version to mistake for its own.
      const owner = randomBytes(OWNER_BYTES)
      const ours = { value: owner, expiresAt: now() + lifeMs, labels: [] }
      if (!(await store.create(key, ours))) return undefined
      const readOurs = async (): Promise<Stored | undefined> => {
        const stored = await store.read(key)
        return stored && owner.equals(stored.value) ? stored : undefined
      }
      return {
        isOurs: async () => (await readOurs()) !== undefined,
        async release() {
          try {
            const stored = await readOurs()
            // What has expired is absent, and only our own version is replaced.
            if (stored) await store.replace(key, { ...ours, expiresAt: now() }, stored.version)
          } catch (error) {
            report('lease_not_released', { ...factsOf(error), session: shortKey(name) })
          }
        },
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
  }
}
