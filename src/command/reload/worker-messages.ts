// What the first process and its workers say to each other about a reload.
import { z } from 'zod'

const refused = { file: z.string(), detail: z.string() }

export const toWorker = z.discriminatedUnion('reload', [
  /** What it has read is what all have, or not. */
  z.object({ reload: z.literal('start'), isSame: z.boolean() }),
  z.object({ reload: z.literal('prepare'), id: z.number() }),
  z.object({ reload: z.literal('use'), id: z.number(), tells: z.boolean() }),
  z.object({ reload: z.literal('refused'), ...refused }),
])

export const toFirst = z.discriminatedUnion('reload', [
  /** What it would start with. */
  z.object({ reload: z.literal('starting'), fingerprint: z.string() }),
  /** What it has started with. */
  z.object({ reload: z.literal('started'), fingerprint: z.string() }),
  z.object({ reload: z.literal('prepared'), id: z.number(), fingerprint: z.string() }),
  z.object({ reload: z.literal('refused'), id: z.number(), ...refused }),
  z.object({ reload: z.literal('used'), id: z.number() }),
])

export type ToWorker = z.infer<typeof toWorker>
export type ToFirst = z.infer<typeof toFirst>
/** What is to be answered. */
export type Question = Extract<ToWorker, { id: number }>
/** An answer to what has this number. */
export type Reply = Extract<ToFirst, { id: number }>
