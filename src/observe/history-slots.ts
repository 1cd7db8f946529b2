// The time slots in which the console's history counts, and how they are kept.

import { z } from 'zod'
import { addDuration, BUCKET_COUNT, emptyBuckets, quantileOf } from './histogram.ts'

/** The kinds of work whose durations are kept. */
export const TIMED = ['request', 'provider', 'store'] as const
export type TimedOperation = (typeof TIMED)[number]

export interface Slot {
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  /** How often each thing happened. */
  readonly counts: Record<string, number>
  /** The buckets of histogram.ts. */
  readonly times: Record<TimedOperation, number[]>
  /** How many sessions there were at its end. */
  sessions?: number
}

const countSchema = z.number().int().min(0)
const bucketsSchema = z.array(countSchema).length(BUCKET_COUNT)

export const slotSchema: z.ZodType<Slot> = z.object({
  at: z.number(),
  counts: z.record(z.string(), countSchema),
  times: z.object({ request: bucketsSchema, provider: bucketsSchema, store: bucketsSchema }),
  sessions: countSchema.optional(),
}) as z.ZodType<Slot>

export function emptySlot(at: number): Slot {
  return { at, counts: {}, times: { request: emptyBuckets(), provider: emptyBuckets(), store: emptyBuckets() } }
}

export function count({ counts }: Slot, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

export function addTime({ times }: Slot, timed: TimedOperation, ms: number): void {
  addDuration(times[timed], ms / 1000)
}

/** Names come from the store and may be anything, such as `constructor`, which every object has. */
function countOf({ counts }: Slot, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0
}

/** The number of sessions is not summed: all processes count the same ones, and the last count is the current one. */
export function addSlot(into: Slot, from: Slot): void {
  for (const [name, number] of Object.entries(from.counts)) into.counts[name] = countOf(into, name) + number
  for (const timed of TIMED)
    for (const [bucket, number] of from.times[timed].entries())
      into.times[timed][bucket] = (into.times[timed][bucket] ?? 0) + number
  if (from.sessions !== undefined) into.sessions = from.sessions
}

/** The milliseconds that this share of the times did not exceed; `undefined` if there were none. */
export function quantile({ times }: Slot, timed: TimedOperation, share: number): number | undefined {
  const seconds = quantileOf(times[timed], share)
  return seconds === undefined ? undefined : seconds * 1000
}

// The last hour in minutes, the last day in quarters of an hour, the last week in steps of two hours.

const MINUTE_MS = 60_000

/** How much time a slot of each range covers, and how many of them there are. */
export const RANGES = {
  hour: { stepMs: MINUTE_MS, slots: 60 },
  day: { stepMs: 15 * MINUTE_MS, slots: 96 },
  week: { stepMs: 120 * MINUTE_MS, slots: 84 },
} as const

export type Range = keyof typeof RANGES

/** Oldest first. */
export type SlotsByRange = Readonly<Record<Range, readonly Slot[]>>

export interface SlotHistory {
  /** The slot of the current minute. */
  current(): Slot
  /** All slots, including the current minute. */
  all(): SlotsByRange
  /** Adds the slots of another process. */
  add(slots: SlotsByRange): void
}

const NAMES = Object.keys(RANGES) as Range[]

export function createSlotHistory(now: () => number): SlotHistory {
  const levels: Record<Range, Map<number, Slot>> = { hour: new Map(), day: new Map(), week: new Map() }
  let minute = emptySlot(startOf('hour', now()))

  function addTo(range: Range, slot: Slot): void {
    const level = levels[range]
    const at = startOf(range, slot.at)
    const there = level.get(at) ?? emptySlot(at)
    level.set(at, there)
    addSlot(there, slot)
  }

  function forgetOld(): void {
    for (const range of NAMES)
      for (const at of levels[range].keys()) if (at <= now() - lengthOf(range)) levels[range].delete(at)
  }

  function current(): Slot {
    const time = now()
    if (time >= minute.at && time < minute.at + MINUTE_MS) return minute
    const at = startOf('hour', time)
    for (const range of NAMES) addTo(range, minute)
    minute = emptySlot(at)
    forgetOld()
    return minute
  }

  return {
    current,
    all() {
      const latest = current()
      const slotsOf = (range: Range) =>
        inOrder([...levels[range].values(), { ...latest, at: startOf(range, latest.at) }])
      return { hour: slotsOf('hour'), day: slotsOf('day'), week: slotsOf('week') }
    },
    add(slots) {
      for (const range of NAMES) for (const slot of slots[range]) addTo(range, slot)
      forgetOld()
    },
  }
}

/** Several histories as one, with empty slots where nothing was counted. */
export function slotsOf(range: Range, histories: readonly SlotsByRange[], now: number): Slot[] {
  const { stepMs, slots } = RANGES[range]
  const last = startOf(range, now)
  const whole = Array.from({ length: slots }, (_, n) => emptySlot(last - (slots - 1 - n) * stepMs))
  const byStart = new Map(whole.map(slot => [slot.at, slot]))
  for (const history of histories)
    for (const slot of history[range]) {
      const into = byStart.get(slot.at)
      if (into) addSlot(into, slot)
    }
  return whole
}

function inOrder(slots: readonly Slot[]): Slot[] {
  const byStart = new Map<number, Slot>()
  for (const slot of slots) {
    const there = byStart.get(slot.at) ?? emptySlot(slot.at)
    byStart.set(slot.at, there)
    addSlot(there, slot)
  }
  return [...byStart.values()].sort((one, other) => one.at - other.at)
}

function startOf(range: Range, at: number): number {
  return at - (at % RANGES[range].stepMs)
}

function lengthOf(range: Range): number {
  return RANGES[range].stepMs * RANGES[range].slots
}
