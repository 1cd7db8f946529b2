// All processes that share the store: which are alive, and what each has seen. What an ended one has left is taken over by
// the next that starts.
import { randomUUID } from 'node:crypto'
import type { Store } from '../../stores/store.ts'
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
const KEPT_MS = 8 * 86_400_000
const LABEL = 'instances'
const MOST_READ = 200
/** Whoever looks again within this time is shown the same. */
const FRESH_MS = 5000

interface Other extends InstanceRecord {
  readonly key: string
}

export function createInstances({ store, instance, history, now }: InstancesOptions): Instances {
  const key = `instance-${randomUUID()}`
  let read: Promise<Other[]> | undefined
  let readAt = 0

  async function readOthers(): Promise<Other[]> {
    const { entries } = await store.list({ label: LABEL, limit: MOST_READ })
    const records = await Promise.all(
      entries.map(async entry => ({ key: entry.key, found: await readInstance(entry.value) })),
    )
    return records.flatMap(({ key: other, found }) => (found && other !== key ? [{ ...found, key: other }] : []))
  }

  function others(): Promise<Other[]> {
    if (read && now() - readAt < FRESH_MS) return read
    readAt = now()
    read = readOthers()
    read.catch(() => {
      read = undefined
    })
    return read
  }

  const isAlive = ({ hasEnded, writtenAt }: InstanceRecord) => !hasEnded && now() - writtenAt < DEAD_AFTER_MS

  async function write(hasEnded = false): Promise<void> {
    const record = { instance, writtenAt: now(), hasEnded, slots: history.all() }
    const entry = { value: await packInstance(record), expiresAt: now() + KEPT_MS, labels: [LABEL] }
    const old = await store.read(key)
    if (old) await store.replace(key, entry, old.version)
    else await store.create(key, entry)
  }

  return {
    async alive() {
      return [instance, ...(await others()).filter(isAlive).map(other => other.instance)]
    },
    async others() {
      return (await others()).map(({ slots }) => slots)
    },
    write,
    async adopt() {
      const ended = (await readOthers()).filter(other => !isAlive(other))
      for (const other of ended) {
        // Of several that start at once, one gets it.
        const left = await store.take(other.key)
        const record = left && (await readInstance(left.value))
        if (record) history.add(record.slots)
      }
      read = undefined
    },
  }
}
