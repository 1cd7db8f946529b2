// A lease in the store: of all requests, processes and machines that want to do something for a session, one does it.
// It runs out by itself if its holder dies, and its holder can tell whether it still has it.
import { factsOf } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Store } from '../stores/store.ts'

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

const NOTHING = new Uint8Array()

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  return {
    async take(name) {
      const key = keyOf(name)
      const ours = { value: NOTHING, expiresAt: now() + lifeMs, labels: [] }
      if (!(await store.create(key, ours))) return undefined
      const version = (await store.read(key))?.version
      return {
        isOurs: async () => version !== undefined && (await store.read(key))?.version === version,
        async release() {
          try {
            // What has expired is absent, and only our own version is replaced.
            if (version !== undefined) await store.replace(key, { ...ours, expiresAt: now() }, version)
          } catch (error) {
            report('lease_not_released', factsOf(error))
          }
        },
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
  }
}
