// How much of an application may be in use at once. Ordinary exchanges have slots, and a queue of bounded length and time
// in front of them. Whoever only waits for its client, or has become a stream, gives its slot to others and is counted
// on top, as long as there is a place for it.
import { createWatchList, type Watched } from '../../slow-clients/watch-list.ts'
import { createStreamPlaces, type Lasting } from './stream-places.ts'

/** Something that uses the application, or waits to. */
export interface Occupant extends Watched, Lasting {
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
  enter(occupant: Occupant): void
  /** The same for what never is an ordinary exchange. */
  enterAsStream(occupant: Occupant): void
  /** Gives its slot to somebody else; an endless one without a place is turned away, any other keeps its slot. */
  becomeStream(occupant: Occupant): void
  /** Does nothing if it has left already. */
  leave(occupant: Occupant): void
  /** How many wait for a slot. */
  readonly waiting: number
  /** How many are there that would not end by themselves. */
  readonly streams: number
  /** Nobody is there, and nobody waits. */
  readonly isEmpty: boolean
  /** Whether requests find no slot. */
  readonly isTurningAway: boolean
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

export function createCapacity({ slots, streams, queue, queueMs }: Limits): Capacity {
  const waiting = new Map<Occupant, NodeJS.Timeout>()
  const present = createWatchList<Occupant>(LOOK_EVERY_MS, look)
  let slotsTaken = 0
  const places = createStreamPlaces<Occupant>(streams)
  let isTurningAway = false
  let emptied: (() => void) | undefined

  function look(occupant: Occupant): void {
    if (occupant.stage === 'slot' && occupant.isSlow()) becomeStream(occupant)
  }

  function giveSlot(occupant: Occupant): void {
    occupant.stage = 'slot'
    present.add(occupant)
  }

  function turnAway(occupant: Occupant, reason: 'queue_full' | 'no_slot_in_time'): void {
    isTurningAway = true
    occupant.turnAway(reason)
  }

  function leaveQueue(occupant: Occupant): void {
    clearTimeout(waiting.get(occupant))
    waiting.delete(occupant)
    occupant.stage = 'outside'
  }

  function runOutOfTime(occupant: Occupant): void {
    leaveQueue(occupant)
    turnAway(occupant, 'no_slot_in_time')
  }

  function passSlotOn(): void {
    const [next] = waiting.keys()
    if (next) {
      leaveQueue(next)
      giveSlot(next)
      // Not from within the end of another exchange: its connection may not be ready for the next one yet.
      process.nextTick(startIfThere, next)
    } else {
      slotsTaken--
      isTurningAway = false
    }
  }

  function takePlace(occupant: Occupant): boolean {
    if (places.take(occupant)) return true
    const victim = places.victimFor(occupant)
    if (!victim) return false
    places.giveBack(victim)
    victim.stage = 'ending'
    victim.turnAway('holds_most_streams')
    return places.take(occupant)
  }

  function becomeStream(occupant: Occupant): void {
    if (occupant.stage !== 'slot') return
    if (takePlace(occupant)) {
      occupant.stage = 'stream'
      passSlotOn()
    } else if (occupant.isEndless || (waiting.size > 0 && occupant.waitsForClient())) occupant.turnAway('streams_full')
  }

  function endStreams(): void {
    for (const occupant of [...present.items]) if (occupant.isEndless) occupant.cutOff()
  }

  return {
    enter(occupant) {
      if (slotsTaken < slots) {
        slotsTaken++
        giveSlot(occupant)
        occupant.start()
      } else if (waiting.size < queue) {
        occupant.stage = 'waiting'
        waiting.set(occupant, setTimeout(runOutOfTime, queueMs, occupant))
      } else turnAway(occupant, 'queue_full')
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
      if (stage === 'slot') passSlotOn()
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
    get isTurningAway() {
      return isTurningAway
    },
    endStreams,
    async close(patienceMs) {
      for (const occupant of waiting.keys()) runOutOfTime(occupant)
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

function startIfThere(occupant: Occupant): void {
  if (occupant.stage === 'slot') occupant.start()
}
