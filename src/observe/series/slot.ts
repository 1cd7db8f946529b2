// What happened within one step of time: how often, and how long it took.
import { z } from 'zod'

/** Of which the times are kept. */
export const TIMED = ['request', 'provider', 'store'] as const
export type Timed = (typeof TIMED)[number]

export interface Slot {
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  /** How often each thing happened. */
  readonly counts: Record<string, number>
  /** For each bucket, how many took no longer than its bound and longer than that of the one before. */
  readonly times: Record<Timed, number[]>
  /** How many sessions there were at its end. */
  sessions?: number
}

/** From 0.1 ms on, each bucket reaches twice as far as the one before; the last has no end. */
const FIRST_BOUND_MS = 0.1
const BUCKETS = 18

const countSchema = z.number().int().min(0)
const bucketsSchema = z.array(countSchema).length(BUCKETS)

export const slotSchema: z.ZodType<Slot> = z.object({
  at: z.number(),
  counts: z.record(z.string(), countSchema),
  times: z.object({ request: bucketsSchema, provider: bucketsSchema, store: bucketsSchema }),
  sessions: countSchema.optional(),
}) as z.ZodType<Slot>

export function emptySlot(at: number): Slot {
  const none = () => Array<number>(BUCKETS).fill(0)
  return { at, counts: {}, times: { request: none(), provider: none(), store: none() } }
}

export function count({ counts }: Slot, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

export function addTime({ times }: Slot, timed: Timed, ms: number): void {
  const bucket = ms <= FIRST_BOUND_MS ? 0 : Math.ceil(Math.log2(ms / FIRST_BOUND_MS))
  const buckets = times[timed]
  const place = Math.min(bucket, BUCKETS - 1)
  buckets[place] = (buckets[place] ?? 0) + 1
}

/** The names can be anybody's who writes to the store: `constructor` is one that every object knows. */
function countOf({ counts }: Slot, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0
}

/** Of several processes sessions are the same ones, and of several times those at the end count. */
export function addSlot(into: Slot, from: Slot): void {
  for (const [name, number] of Object.entries(from.counts)) into.counts[name] = countOf(into, name) + number
  for (const timed of TIMED)
    for (const [place, number] of from.times[timed].entries())
      into.times[timed][place] = (into.times[timed][place] ?? 0) + number
  if (from.sessions !== undefined) into.sessions = from.sessions
}

/** How many milliseconds this share of them took at most, by the bounds of the buckets; `undefined` if there were none. */
export function quantile({ times }: Slot, timed: Timed, share: number): number | undefined {
  const buckets = times[timed]
  const all = buckets.reduce((sum, number) => sum + number, 0)
  if (all === 0) return undefined
  let seen = 0
  for (const [place, number] of buckets.entries()) {
    const wanted = all * share - seen
    const upper = FIRST_BOUND_MS * 2 ** place
    const lower = place === 0 ? 0 : upper / 2
    if (wanted <= number) return lower + (upper - lower) * (wanted / number)
    seen += number
  }
  return FIRST_BOUND_MS * 2 ** (BUCKETS - 1)
}
