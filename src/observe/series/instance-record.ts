// What a process leaves in the store about itself: that it is alive, and what it has seen.
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { z } from 'zod'
import type { Slots } from './history.ts'
import { slotSchema } from './slot.ts'

export interface Instance {
  readonly host: string
  readonly pid: number
  /** Which of several on this machine. */
  readonly worker?: number | undefined
  readonly version: string
  readonly startedAt: number
}

export interface InstanceRecord {
  readonly instance: Instance
  readonly writtenAt: number
  /** It has ended politely. */
  readonly hasEnded: boolean
  readonly slots: Slots
}

const LARGEST = 8 * 1024 * 1024

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

export async function packInstance(record: InstanceRecord): Promise<Uint8Array> {
  return deflate(JSON.stringify(record))
}

/** `undefined` if it is not one of ours, or of another version. */
export async function readInstance(value: Uint8Array): Promise<InstanceRecord | undefined> {
  try {
    const text = (await inflate(value, { maxOutputLength: LARGEST })).toString()
    return recordSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
