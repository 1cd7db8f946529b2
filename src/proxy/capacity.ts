// How much of an application may be in use at once. Ordinary requests have slots, and a queue of bounded length and time in front
// of them. A request that only waits for its client, or has become a stream, gives its slot to others and is counted as a stream,
// as long as the number of streams allows it. So is a gRPC call without an answer, as long as its owner holds fewer streams than there
// are slots.
//
// One user may have all slots while no other user needs one. The queue is served owner by owner; when it is full, the owner with
// the most entries loses the last one. If one owner holds so many slots that others would wait for a slow page to end, the owners
// who hold few can use a quarter more slots.

import { createFairQueue } from '../util/fair-queue.ts'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'

/** Something that uses the application, or waits to. */
export interface SlotHolder extends WatchItem, StreamCandidate {
  /**
   * Set by the capacity. `waiting` is in the queue; `slot` and `stream` use the application; an `ending` one has lost its stream
   * slot to another owner, and leaves when its connection is free.
   */
  stage: 'outside' | 'waiting' | 'slot' | 'stream' | 'ending'
  /** Called when it gets a slot. */
  start(): void
  /** Called when there is no room: too many came before it, or its owner holds the most and others need room. */
  reject(reason: 'queue_full' | 'no_slot_in_time' | 'streams_full' | 'holds_most_streams'): void
  /**
   * Called regularly while it has a slot. `client` if it waits for its client rather than for the application;
   * `unanswered_call` if it is a gRPC call, which the application may work on or leave silent for as long as it is open.
   */
  checkSlow(): 'client' | 'unanswered_call' | undefined
  cutOff(): void
}

export interface Capacity {
  /** Starts it now or when it is its turn, or rejects it. */
  enter(holder: SlotHolder): void
  /** For a WebSocket, which is a stream from the start. */
  enterAsStream(holder: SlotHolder): void
  /** Gives its slot to another. If there are too many streams, an endless one is rejected, and any other keeps its slot. */
  becomeStream(holder: SlotHolder): void
  /** Does nothing if it has left already. */
  leave(holder: SlotHolder): void
  /** How many wait for a slot. */
  readonly waiting: number
  /** How many are endless. */
  readonly streams: number
  /** Nothing is in progress, and nothing waits. */
  readonly isEmpty: boolean
  /** Cuts off the endless ones, and from now on each that begins. */
  endStreams(): void
  /** All others have this long to finish. */
  close(timeoutMs: number): Promise<void>
}

export interface Limits {
  readonly slots: number
  readonly streams: number
  readonly queue: number
  readonly queueMs: number
}

/** A slot is given back after one to two of these intervals. */
const CHECK_INTERVAL_MS = 100
/** The share of slots that are added for owners who hold few while another holds many. */
const RESERVE_SHARE = 1 / 4
/** An owner with this share of the slots delays others. */
const MANY_SHARE = 1 / 8
/** An owner with less than this share of the reserve may use one of its slots. */
const FEW_SHARE = 1 / 8

export function createCapacity({ slots, streams, queue, queueMs }: Limits): Capacity {
  const reserve = Math.floor(slots * RESERVE_SHARE)
  const waiting = createFairQueue<SlotHolder>()
  const deadlines = new Map<SlotHolder, NodeJS.Timeout>()
  const shares = createSlotShares({
    many: Math.max(2, Math.ceil(slots * MANY_SHARE)),
    few: Math.max(1, Math.floor(reserve * FEW_SHARE)),
  })
  const present = createWatchList<SlotHolder>(CHECK_INTERVAL_MS, check)
  let slotsTaken = 0
  const streamSlots = createStreamSlots<SlotHolder>(streams)
  let hasEndedStreams = false
  let emptied: (() => void) | undefined

  function check(holder: SlotHolder): void {
    const reason = holder.stage === 'slot' ? holder.checkSlow() : undefined
    if (reason === 'client' || (reason === 'unanswered_call' && mayHaveUnanswered(holder.owner))) becomeStream(holder)
  }

  /** Otherwise one owner could ask the application for as much at once as there are streams. */
  function mayHaveUnanswered(owner: string): boolean {
    return streamSlots.heldBy(owner) < slots
  }

  function takeSlot(holder: SlotHolder): void {
    slotsTaken++
    shares.add(holder)
    holder.stage = 'slot'
    present.add(holder)
  }

  /** Whether the owner may have a slot beyond the regular ones: another owner holds many, and this one few. */
  function mayHaveReserve(owner: string): boolean {
    return slotsTaken < slots + reserve && shares.hasHeavyUser && shares.hasFew(owner)
  }

  function* slotOwners(): Generator<string> {
    for (const { stage, owner } of present.items) if (stage === 'slot') yield owner
  }

  function wait(holder: SlotHolder): void {
    holder.stage = 'waiting'
    waiting.add(holder, holder.owner)
    deadlines.set(holder, setTimeout(rejectTimedOut, queueMs, holder))
  }

  function leaveQueue(holder: SlotHolder): void {
    waiting.remove(holder, holder.owner)
    clearTimeout(deadlines.get(holder))
    deadlines.delete(holder)
    holder.stage = 'outside'
  }

  function rejectTimedOut(holder: SlotHolder): void {
    leaveQueue(holder)
    holder.reject('no_slot_in_time')
  }

  /** If the queue is full, it takes the place of an entry of the owner with the most entries. */
  function enqueueOrReject(holder: SlotHolder): void {
    const last = waiting.size < queue ? undefined : waiting.lastOfBusiest(holder.owner)
    if (last) leaveQueue(last)
    if (waiting.size < queue) wait(holder)
    else holder.reject('queue_full')
    last?.reject('queue_full')
  }

  /** An owner who holds many comes last. */
  function nextWaiting(): SlotHolder | undefined {
    if (waiting.size === 0) return undefined
    if (slotsTaken >= slots) return waiting.take(mayHaveReserve)
    return waiting.take(owner => !shares.isHeavyUser(owner)) ?? waiting.take(() => true)
  }

  function releaseSlot(holder: SlotHolder): void {
    slotsTaken--
    shares.remove(holder)
    const next = nextWaiting()
    if (next) {
      leaveQueue(next)
      takeSlot(next)
      // Not while another request ends: its connection may not be ready for the next one yet.
      process.nextTick(startIfAdmitted, next)
    } else if (slotsTaken < slots / 2) shares.end()
  }

  function takeStreamSlot(holder: SlotHolder): boolean {
    if (streamSlots.take(holder)) return true
    const evicted = streamSlots.pickEviction(holder)
    if (!evicted) return false
    streamSlots.release(evicted)
    evicted.stage = 'ending'
    evicted.reject('holds_most_streams')
    return streamSlots.take(holder)
  }

  function becomeStream(holder: SlotHolder): void {
    if (holder.stage !== 'slot') return
    if (hasEndedStreams && holder.isEndless) holder.cutOff()
    else if (takeStreamSlot(holder)) {
      holder.stage = 'stream'
      releaseSlot(holder)
    } else if (holder.isEndless || (waiting.size > 0 && holder.waitsForClient())) holder.reject('streams_full')
  }

  function endStreams(): void {
    hasEndedStreams = true
    for (const holder of [...present.items]) if (holder.isEndless) holder.cutOff()
  }

  return {
    enter(holder) {
      if (slotsTaken >= slots) {
        shares.begin(slotOwners)
        if (!mayHaveReserve(holder.owner)) return enqueueOrReject(holder)
      }
      takeSlot(holder)
      holder.start()
    },
    enterAsStream(holder) {
      if (!takeStreamSlot(holder)) return holder.reject('streams_full')
      holder.stage = 'stream'
      present.add(holder)
      holder.start()
    },
    becomeStream,
    leave(holder) {
      const { stage } = holder
      if (stage === 'outside') return
      if (stage === 'waiting') return leaveQueue(holder)
      holder.stage = 'outside'
      present.remove(holder)
      if (stage === 'slot') releaseSlot(holder)
      else streamSlots.release(holder)
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
    async close(timeoutMs) {
      for (const holder of waiting.items) rejectTimedOut(holder)
      endStreams()
      if (present.items.length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>()
        emptied = resolve
        const timer = setTimeout(resolve, timeoutMs)
        await promise
        clearTimeout(timer)
      }
      for (const holder of [...present.items]) holder.cutOff()
      present.stop()
    },
  }
}

function startIfAdmitted(holder: SlotHolder): void {
  if (holder.stage === 'slot') holder.start()
}

// How many slots each owner holds. Counted only while slots are short: a request that finds a free slot needs no owner.

export interface SlotShares {
  /** Starts to count, with these owners. Does nothing if it is counting already. */
  begin(owners: () => Iterable<string>): void
  end(): void
  add(holder: Holder): void
  remove(holder: Holder): void
  /** Whether an owner holds so many that others are short of slots. */
  readonly hasHeavyUser: boolean
  isHeavyUser(owner: string): boolean
  /** Whether an owner holds so few that they may have one of the reserve. */
  hasFew(owner: string): boolean
}

interface Holder {
  readonly owner: string
}

export interface Share {
  /** An owner with so many leaves others short of slots. */
  readonly many: number
  /** An owner with fewer may have one of the reserve. */
  readonly few: number
}

export function createSlotShares({ many, few }: Share): SlotShares {
  let held: Map<string, number> | undefined
  let heavyUsers = 0

  function change(owner: string, by: 1 | -1): void {
    if (!held) return
    const before = held.get(owner) ?? 0
    const after = before + by
    if (after > 0) held.set(owner, after)
    else held.delete(owner)
    if (before < many && after >= many) heavyUsers++
    else if (before >= many && after < many) heavyUsers--
  }

  return {
    begin(owners) {
      if (held) return
      held = new Map()
      heavyUsers = 0
      for (const owner of owners()) change(owner, 1)
    },
    end() {
      held = undefined
      heavyUsers = 0
    },
    add(holder) {
      if (held) change(holder.owner, 1)
    },
    remove(holder) {
      if (held) change(holder.owner, -1)
    },
    get hasHeavyUser() {
      return heavyUsers > 0
    },
    isHeavyUser: owner => (held?.get(owner) ?? 0) >= many,
    hasFew: owner => (held?.get(owner) ?? 0) < few,
  }
}

// The slots for streams: sockets, event streams, and answers or bodies that wait for their client. When all are taken, the
// owner who holds most gives one back, so that no owner can take them from all others.

/** A request or a socket that may need a slot for streams. */
export interface StreamCandidate {
  /** The user, or the address of a visitor. */
  readonly owner: string
  /** Whether it does not end on its own. */
  readonly isEndless: boolean
  /** Whether it waits for its client now. */
  waitsForClient(): boolean
}

export interface StreamSlots<Item extends StreamCandidate> {
  /** False if all are taken. */
  take(item: Item): boolean
  release(item: Item): void
  /** How many this owner holds. */
  heldBy(owner: string): number
  /** The least important one of the owner who holds most, if that is more than the newcomer's owner would have. */
  pickEviction(newcomer: Item): Item | undefined
}

export function createStreamSlots<Item extends StreamCandidate>(most: number): StreamSlots<Item> {
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
    release(item) {
      const held = byOwner.get(item.owner)
      if (!held?.delete(item)) return
      taken--
      if (held.size === 0) byOwner.delete(item.owner)
    },
    heldBy: owner => byOwner.get(owner)?.size ?? 0,
    pickEviction(newcomer) {
      const own = byOwner.get(newcomer.owner)?.size ?? 0
      let largest: Set<Item> | undefined
      for (const held of byOwner.values()) if (held.size > (largest?.size ?? own + 1)) largest = held
      return largest && pickEvicted(largest)
    },
  }
}

/** Never picks an ordinary answer that flows. */
function pickEvicted<Item extends StreamCandidate>(held: Iterable<Item>): Item | undefined {
  let endless: Item | undefined
  for (const item of held) {
    if (!item.isEndless && item.waitsForClient()) return item
    if (item.isEndless) endless ??= item
  }
  return endless
}
