// What the history of the console counts in each slot of time, and how slots are kept.

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

// The last hour by minutes, the last day by quarters of an hour, the last week by pairs of hours.

const MINUTE_MS = 60_000

/** How much time a slot of each range covers, and how many of them there are. */
export const RANGES = {
  hour: { stepMs: MINUTE_MS, slots: 60 },
  day: { stepMs: 15 * MINUTE_MS, slots: 96 },
  week: { stepMs: 120 * MINUTE_MS, slots: 84 },
} as const

export type Range = keyof typeof RANGES

/** Oldest first. */
export type Slots = Readonly<Record<Range, readonly Slot[]>>

export interface SlotHistory {
  /** The slot of this very minute. */
  current(): Slot
  /** All that there is, this minute included. */
  all(): Slots
  /** What somebody else has seen. */
  add(slots: Slots): void
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

/** Those of several histories in one, with nothing where nothing was seen. */
export function slotsOf(range: Range, histories: readonly Slots[], now: number): Slot[] {
  const { stepMs, slots } = RANGES[range]
  const last = startOf(range, now)
  const whole = Array.from({ length: slots }, (_, n) => emptySlot(last - (slots - 1 - n) * stepMs))
  const byStart = new Map(whole.map(slot => [slot.at, slot]))
  for (const history of histories)
    for (const slot of history[range]) {
      const place = byStart.get(slot.at)
      if (place) addSlot(place, slot)
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
