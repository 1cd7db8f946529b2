// How much of an application may be in use at once. Ordinary exchanges have slots, and a queue of bounded length and time
// in front of them. Whoever only waits for its client, or has become a stream, gives its slot to others and is counted
// on top, as long as there is a place for it.
//
// One user may have all slots while nobody else needs one. The queue is served owner by owner; when it is full, whoever has
// most in it loses the last. And where one owner holds so many slots that others would wait for the end of a slow page, a
// quarter more of them are there for those who hold few.

import { createWaitingLine } from '../util/waiting-line.ts'
import { createWatchList, type Watched } from '../util/watch-list.ts'

/** Something that uses the application, or waits to. */
export interface SlotHolder extends Watched, Lasting {
  /** The capacity's own. */
  stage: 'outside' | 'waiting' | 'slot' | 'stream' | 'ending'
  /** It has a slot. */
  start(): void
  /** There is no room for it: too many were before it, or its owner holds most and others need a place. */
  turnAway(reason: 'queue_full' | 'no_slot_in_time' | 'streams_full' | 'holds_most_streams'): void
  /** Looked at now and then while it has a slot: whether it does not wait for the application, but for its client. */
  isSlow(): boolean
  cutOff(): void
}

export interface Capacity {
  /** Starts it now, or when its turn has come, or turns it away. */
  enter(occupant: SlotHolder): void
  /** The same for what never is an ordinary exchange. */
  enterAsStream(occupant: SlotHolder): void
  /** Gives its slot to somebody else; an endless one without a place is turned away, any other keeps its slot. */
  becomeStream(occupant: SlotHolder): void
  /** Does nothing if it has left already. */
  leave(occupant: SlotHolder): void
  /** How many wait for a slot. */
  readonly waiting: number
  /** How many are there that would not end by themselves. */
  readonly streams: number
  /** Nobody is there, and nobody waits. */
  readonly isEmpty: boolean
  /** Cuts off what would not end by itself. */
  endStreams(): void
  /** All else has this long to end by itself. */
  close(patienceMs: number): Promise<void>
}

export interface Limits {
  readonly slots: number
  readonly streams: number
  readonly queue: number
  readonly queueMs: number
}

/** A slot is given back after one to two of these. */
const LOOK_EVERY_MS = 100
/** Of the slots: so many more for owners who hold few while another holds many. */
const RESERVE_SHARE = 1 / 4
/** Of the slots: who holds so many holds others up. */
const MANY_SHARE = 1 / 8
/** Of the reserve: who holds less may have one of it. */
const FEW_SHARE = 1 / 8

export function createCapacity({ slots, streams, queue, queueMs }: Limits): Capacity {
  const reserve = Math.floor(slots * RESERVE_SHARE)
  const waiting = createWaitingLine<SlotHolder>()
  const deadlines = new Map<SlotHolder, NodeJS.Timeout>()
  const shares = createSlotShares({
    many: Math.max(2, Math.ceil(slots * MANY_SHARE)),
    few: Math.max(1, Math.floor(reserve * FEW_SHARE)),
  })
  const present = createWatchList<SlotHolder>(LOOK_EVERY_MS, look)
  let slotsTaken = 0
  const places = createStreamPlaces<SlotHolder>(streams)
  let emptied: (() => void) | undefined

  function look(occupant: SlotHolder): void {
    if (occupant.stage === 'slot' && occupant.isSlow()) becomeStream(occupant)
  }

  function takeSlot(occupant: SlotHolder): void {
    slotsTaken++
    shares.add(occupant)
    occupant.stage = 'slot'
    present.add(occupant)
  }

  /** On top of all slots: others hold many, and this one is not who holds them. */
  function mayHaveReserve(owner: string): boolean {
    return slotsTaken < slots + reserve && shares.hasHog && shares.hasFew(owner)
  }

  function* slotOwners(): Generator<string> {
    for (const { stage, owner } of present.items) if (stage === 'slot') yield owner
  }

  function wait(occupant: SlotHolder): void {
    occupant.stage = 'waiting'
    waiting.add(occupant, occupant.owner)
    deadlines.set(occupant, setTimeout(runOutOfTime, queueMs, occupant))
  }

  function leaveQueue(occupant: SlotHolder): void {
    waiting.remove(occupant, occupant.owner)
    clearTimeout(deadlines.get(occupant))
    deadlines.delete(occupant)
    occupant.stage = 'outside'
  }

  function runOutOfTime(occupant: SlotHolder): void {
    leaveQueue(occupant)
    occupant.turnAway('no_slot_in_time')
  }

  /** In the place of whoever has most in the queue, if it is full. */
  function waitOrTurnAway(occupant: SlotHolder): void {
    const last = waiting.size < queue ? undefined : waiting.lastOfLargest(occupant.owner)
    if (last) leaveQueue(last)
    if (waiting.size < queue) wait(occupant)
    else occupant.turnAway('queue_full')
    last?.turnAway('queue_full')
  }

  /** Who holds many comes last. */
  function nextWaiting(): SlotHolder | undefined {
    if (waiting.size === 0) return undefined
    if (slotsTaken >= slots) return waiting.take(mayHaveReserve)
    return waiting.take(owner => !shares.isHog(owner)) ?? waiting.take(() => true)
  }

  function giveSlotBack(occupant: SlotHolder): void {
    slotsTaken--
    shares.remove(occupant)
    const next = nextWaiting()
    if (next) {
      leaveQueue(next)
      takeSlot(next)
      // Not from within the end of another exchange: its connection may not be ready for the next one yet.
      process.nextTick(startIfThere, next)
    } else if (slotsTaken < slots / 2) shares.end()
  }

  function takePlace(occupant: SlotHolder): boolean {
    if (places.take(occupant)) return true
    const victim = places.victimFor(occupant)
    if (!victim) return false
    places.giveBack(victim)
    victim.stage = 'ending'
    victim.turnAway('holds_most_streams')
    return places.take(occupant)
  }

  function becomeStream(occupant: SlotHolder): void {
    if (occupant.stage !== 'slot') return
    if (takePlace(occupant)) {
      occupant.stage = 'stream'
      giveSlotBack(occupant)
    } else if (occupant.isEndless || (waiting.size > 0 && occupant.waitsForClient())) occupant.turnAway('streams_full')
  }

  function endStreams(): void {
    for (const occupant of [...present.items]) if (occupant.isEndless) occupant.cutOff()
  }

  return {
    enter(occupant) {
      if (slotsTaken >= slots) {
        shares.begin(slotOwners)
        if (!mayHaveReserve(occupant.owner)) return waitOrTurnAway(occupant)
      }
      takeSlot(occupant)
      occupant.start()
    },
    enterAsStream(occupant) {
      if (!takePlace(occupant)) return occupant.turnAway('streams_full')
      occupant.stage = 'stream'
      present.add(occupant)
      occupant.start()
    },
    becomeStream,
    leave(occupant) {
      const { stage } = occupant
      if (stage === 'outside') return
      if (stage === 'waiting') return leaveQueue(occupant)
      occupant.stage = 'outside'
      present.remove(occupant)
      if (stage === 'slot') giveSlotBack(occupant)
      else places.giveBack(occupant)
      if (present.items.length === 0) emptied?.()
    },
    get waiting() {
      return waiting.size
    },
    get streams() {
      return present.items.filter(({ isEndless }) => isEndless).length
    },
    get isEmpty() {
      return present.items.length === 0 && waiting.size === 0
    },
    endStreams,
    async close(patienceMs) {
      for (const occupant of waiting.items) runOutOfTime(occupant)
      endStreams()
      if (present.items.length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>()
        emptied = resolve
        const patience = setTimeout(resolve, patienceMs)
        await promise
        clearTimeout(patience)
      }
      for (const occupant of [...present.items]) occupant.cutOff()
      present.stop()
    },
  }
}

function startIfThere(occupant: SlotHolder): void {
  if (occupant.stage === 'slot') occupant.start()
}

// How many slots each owner holds. Counted only while slots are short: a request that finds one free asks nobody whose it is.

export interface SlotShares {
  /** Begins to count, with these. Does nothing while it counts. */
  begin(owners: () => Iterable<string>): void
  end(): void
  add(holder: Holder): void
  remove(holder: Holder): void
  /** Whether somebody holds so many that others are short of them. */
  readonly hasHog: boolean
  isHog(owner: string): boolean
  /** Whether somebody holds so few that they may have one on top. */
  hasFew(owner: string): boolean
}

interface Holder {
  readonly owner: string
}

export interface Share {
  /** From so many on, others are short of them. */
  readonly many: number
  /** Below so many, an owner may have one on top. */
  readonly few: number
}

export function createSlotShares({ many, few }: Share): SlotShares {
  let held: Map<string, number> | undefined
  let hogs = 0

  function change(owner: string, by: 1 | -1): void {
    if (!held) return
    const before = held.get(owner) ?? 0
    const after = before + by
    if (after > 0) held.set(owner, after)
    else held.delete(owner)
    if (before < many && after >= many) hogs++
    else if (before >= many && after < many) hogs--
  }

  return {
    begin(owners) {
      if (held) return
      held = new Map()
      hogs = 0
      for (const owner of owners()) change(owner, 1)
    },
    end() {
      held = undefined
      hogs = 0
    },
    add(holder) {
      if (held) change(holder.owner, 1)
    },
    remove(holder) {
      if (held) change(holder.owner, -1)
    },
    get hasHog() {
      return hogs > 0
    },
    isHog: owner => (held?.get(owner) ?? 0) >= many,
    hasFew: owner => (held?.get(owner) ?? 0) < few,
  }
}

// The places of what lasts: sockets, streams, and answers or bodies that wait for their client. When they are all taken, whoever
// holds most of them gives one back, so that nobody can take them from everybody else.

/** Something that may have a place. */
export interface Lasting {
  /** Whose it is: a user's, or a visitor's address. */
  readonly owner: string
  /** Whether nobody expects it to end by itself. */
  readonly isEndless: boolean
  /** Whether it waits for its client now. */
  waitsForClient(): boolean
}

export interface StreamPlaces<Item extends Lasting> {
  /** False if all are taken. */
  take(item: Item): boolean
  giveBack(item: Item): void
  /** Of whoever holds most, if that is more than the newcomer's owner would have: the one that is missed least. */
  victimFor(newcomer: Item): Item | undefined
}

export function createStreamPlaces<Item extends Lasting>(most: number): StreamPlaces<Item> {
  const byOwner = new Map<string, Set<Item>>()
  let taken = 0

  return {
    take(item) {
      if (taken >= most) return false
      taken++
      const held = byOwner.get(item.owner)
      if (held) held.add(item)
      else byOwner.set(item.owner, new Set([item]))
      return true
    },
    giveBack(item) {
      const held = byOwner.get(item.owner)
      if (!held?.delete(item)) return
      taken--
      if (held.size === 0) byOwner.delete(item.owner)
    },
    victimFor(newcomer) {
      const own = byOwner.get(newcomer.owner)?.size ?? 0
      let largest: Set<Item> | undefined
      for (const held of byOwner.values()) if (held.size > (largest?.size ?? own + 1)) largest = held
      return largest && pickEviction(largest)
    },
  }
}

/** An ordinary answer that flows is never ended. */
function pickEviction<Item extends Lasting>(held: Iterable<Item>): Item | undefined {
  let endless: Item | undefined
  for (const item of held) {
    if (!item.isEndless && item.waitsForClient()) return item
    if (item.isEndless) endless ??= item
  }
  return endless
}
