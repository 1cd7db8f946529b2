// All processes that share the store: which are alive, and what each has seen. What an ended one has left is taken over by
// the next that starts.
import { randomUUID } from 'node:crypto'
import type { Store, Stored } from '../../stores/store.ts'
import { createFresh } from '../fresh.ts'
import type { History, Slots } from './history.ts'
import { type Instance, type InstanceRecord, packInstance, readInstance } from './instance-record.ts'

export interface Instances {
  /** Those that are alive, this one first. */
  alive(): Promise<Instance[]>
  /** What all others have seen, dead or alive. */
  others(): Promise<Slots[]>
  /** Leaves word of what was seen so far. */
  write(hasEnded?: boolean): Promise<void>
  /** Takes over what those have left that are no more. */
  adopt(): Promise<void>
}

interface InstancesOptions {
  readonly store: Store
  readonly instance: Instance
  readonly history: History
  readonly now: () => number
}

/** Written every minute; one that was missed twice is taken for dead. */
export const WRITE_EVERY_MS = 60_000
const DEAD_AFTER_MS = 2.5 * WRITE_EVERY_MS
/** One that is alive and had no store for a while would write again what was taken over. Until then it is read where it is. */
const LEFT_AFTER_MS = 30 * WRITE_EVERY_MS
const KEPT_MS = 8 * 86_400_000
const LABEL = 'instances'
const MOST_READ = 200
/** Whoever looks again within this time is shown the same. */
const FRESH_MS = 5000

/** As it was read last; without a record if it is none of ours. */
interface Known {
  readonly version: number
  readonly record: InstanceRecord | undefined
}

interface Other extends InstanceRecord {
  readonly key: string
}

export function createInstances({ store, instance, history, now }: InstancesOptions): Instances {
  const key = `instance-${randomUUID()}`
  const others = createFresh(readOthers, FRESH_MS, now)
  let known = new Map<string, Known>()

  /** Each is written once a minute, and read far more often: only what has changed is unpacked. */
  async function unpack({ key, version, value }: Stored): Promise<Known> {
    const before = known.get(key)
    return before?.version === version ? before : { version, record: await readInstance(value) }
  }

  async function readOthers(): Promise<Other[]> {
    const { entries } = await store.list({ label: LABEL, limit: MOST_READ })
    const others = entries.filter(entry => entry.key !== key)
    known = new Map(await Promise.all(others.map(async entry => [entry.key, await unpack(entry)] as const)))
    return [...known].flatMap(([key, { record }]) => (record ? [{ ...record, key }] : []))
  }

  const isAlive = ({ hasEnded, writtenAt }: InstanceRecord) => !hasEnded && now() - writtenAt < DEAD_AFTER_MS
  const isLeft = ({ hasEnded, writtenAt }: InstanceRecord) => hasEnded || now() - writtenAt >= LEFT_AFTER_MS

  async function write(hasEnded = false): Promise<void> {
    const record = { instance, writtenAt: now(), hasEnded, slots: history.all() }
    const entry = { value: await packInstance(record), expiresAt: now() + KEPT_MS, labels: [LABEL] }
    const old = await store.read(key)
    if (old) await store.replace(key, entry, old.version)
    else await store.create(key, entry)
  }

  return {
    async alive() {
      return [instance, ...(await others.get()).filter(isAlive).map(other => other.instance)]
    },
    async others() {
      return (await others.get()).map(({ slots }) => slots)
    },
    write,
    async adopt() {
      const ended = (await readOthers()).filter(isLeft)
      for (const other of ended) {
        // Of several that start at once, one gets it.
        const left = await store.take(other.key)
        const record = left && (await readInstance(left.value))
        if (record) history.add(record.slots)
      }
      others.forget()
    },
  }
}
