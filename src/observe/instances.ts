// All processes that share the store: which are alive, and the history of each. The next process that starts takes over the
// history of an ended one.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { z } from 'zod'
import type { DataKeyring } from '../session/data-keys.ts'
import type { DataKeys } from '../session/record.ts'
import { sealValue, unsealValue } from '../session/sealing.ts'
import type { Store, StoredEntry } from '../stores/store.ts'
import { createCachedValue } from '../util/cached-value.ts'
import { readVersion } from '../util/version.ts'
import { type SlotHistory, type SlotsByRange, slotSchema } from './history-slots.ts'

export interface Instances {
  /** The running instances, this one first. */
  alive(): Promise<Instance[]>
  /** The histories of all others, alive or not. */
  others(): Promise<SlotsByRange[]>
  /** Writes the history so far. */
  write(hasEnded?: boolean): Promise<void>
  /** Takes over the histories of ended processes. */
  adopt(): Promise<void>
}

interface InstancesOptions {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current'>
  readonly instance: Instance
  readonly history: SlotHistory
  readonly now: () => number
}

/** Records are written every minute. After two missed ones a process is considered dead. */
export const WRITE_INTERVAL_MS = 60_000
const DEAD_AFTER_MS = 2.5 * WRITE_INTERVAL_MS
/** A process that lost the store for a while would write again what others had taken over. Until then its record is only read. */
const ABANDONED_AFTER_MS = 30 * WRITE_INTERVAL_MS
const RECORD_TTL_MS = 8 * 86_400_000
const LABEL = 'instances'
const MAX_INSTANCES = 200
/** The records are read at most once within this time. */
const FRESH_MS = 5000

/** A record as it was read last; without `record` if it cannot be read. */
interface CachedRecord {
  readonly version: number
  readonly record: InstanceRecord | undefined
}

interface OtherInstance extends InstanceRecord {
  readonly key: string
}

export function createInstances({ store, keyring, instance, history, now }: InstancesOptions): Instances {
  const key = `instance-${randomUUID()}`
  const others = createCachedValue({ load: readOthers, freshMs: FRESH_MS, now })
  let known = new Map<string, CachedRecord>()

  /** Records are read far more often than written: only changed ones are unpacked. */
  async function unpack(stored: StoredEntry, keys: DataKeys): Promise<CachedRecord> {
    const { version } = stored
    const before = known.get(stored.key)
    return before?.version === version ? before : { version, record: await readInstance(stored, keys) }
  }

  async function readOthers(): Promise<OtherInstance[]> {
    const { entries } = await store.list({ label: LABEL, limit: MAX_INSTANCES })
    const others = entries.filter(entry => entry.key !== key)
    const keys = await keyring.current()
    known = new Map(await Promise.all(others.map(async entry => [entry.key, await unpack(entry, keys)] as const)))
    return [...known].flatMap(([key, { record }]) => (record ? [{ ...record, key }] : []))
  }

  const isAlive = ({ hasEnded, writtenAt }: InstanceRecord) => !hasEnded && now() - writtenAt < DEAD_AFTER_MS
  const isAbandoned = ({ hasEnded, writtenAt }: InstanceRecord) => hasEnded || now() - writtenAt >= ABANDONED_AFTER_MS

  async function write(hasEnded = false): Promise<void> {
    const record = { instance, writtenAt: now(), hasEnded, slots: history.all() }
    const value = await packInstance(key, record, await keyring.current())
    const entry = { value, expiresAt: now() + RECORD_TTL_MS, labels: [LABEL] }
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
      const ended = (await readOthers()).filter(isAbandoned)
      const keys = await keyring.current()
      for (const other of ended) {
        // If several processes start at the same time, one of them gets it.
        const left = await store.take(other.key)
        const record = left && (await readInstance({ ...left, key: other.key }, keys))
        if (record) history.add(record.slots)
      }
      others.invalidate()
    },
  }
}

// The record of a process in the store shows that it is alive, and holds its history. It is sealed, because it has the machine's name.

export interface Instance {
  readonly host: string
  readonly pid: number
  /** The number of the worker on this machine. */
  readonly worker?: number | undefined
  readonly version: string
  readonly startedAt: number
}

export interface InstanceRecord {
  readonly instance: Instance
  readonly writtenAt: number
  /** Whether it was shut down properly. */
  readonly hasEnded: boolean
  readonly slots: SlotsByRange
}

const MAX_RECORD_BYTES = 8 * 1024 * 1024

const recordSchema: z.ZodType<InstanceRecord> = z.object({
  instance: z.object({
    host: z.string(),
    pid: z.number(),
    worker: z.number().optional(),
    version: z.string(),
    startedAt: z.number(),
  }),
  writtenAt: z.number(),
  hasEnded: z.boolean(),
  slots: z.object({ hour: z.array(slotSchema), day: z.array(slotSchema), week: z.array(slotSchema) }),
})

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw) as (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>

export async function packInstance(key: string, record: InstanceRecord, { publicPart }: DataKeys): Promise<Uint8Array> {
  return sealValue(publicPart, await deflate(JSON.stringify(record)), key)
}

/** `undefined` if it cannot be opened, or is of another version. */
async function readInstance(
  { key, value }: Pick<StoredEntry, 'key' | 'value'>,
  { publicPart }: DataKeys,
): Promise<InstanceRecord | undefined> {
  const opened = unsealValue(publicPart, value, key)
  if (!opened) return undefined
  try {
    const text = (await inflate(opened, { maxOutputLength: MAX_RECORD_BYTES })).toString()
    return recordSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

// This process, as the others see it.

export function thisInstance(startedAt: number, worker: number | undefined): Instance {
  return { host: hostname(), pid: process.pid, worker, version: readVersion(), startedAt }
}
