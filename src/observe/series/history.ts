// The last hour by minutes, the last day by quarters of an hour, the last week by pairs of hours.
import { addSlot, emptySlot, type Slot } from './slot.ts'

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

export interface History {
  /** The slot of this very minute. */
  current(): Slot
  /** All that there is, this minute included. */
  all(): Slots
  /** What somebody else has seen. */
  add(slots: Slots): void
}

const NAMES = Object.keys(RANGES) as Range[]

export function createHistory(now: () => number): History {
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
