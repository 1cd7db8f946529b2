// The trail of the memory store.

import { numberOf, positionOf } from './sequence.ts'
import { type Candidate, type PlacedEvent, pageOf, type Trail, type TrailEvent } from './trail.ts'

export function createMemoryTrail(): Trail & { clear(): void } {
  const events: PlacedEvent[] = []
  /** How many came before the first that is kept. */
  let dropped = 0

  function* newestFirst(before = Number.POSITIVE_INFINITY): Generator<Candidate> {
    for (let n = Math.min(events.length, before - dropped) - 1; n >= 0; n--) yield candidate(n)
  }

  function* oldestFirst(after = -1): Generator<Candidate> {
    for (let n = Math.max(0, after + 1 - dropped); n < events.length; n++) yield candidate(n)
  }

  function candidate(n: number): Candidate {
    return { position: positionOf(dropped + n), event: events[n] }
  }

  return {
    async append(added, keep) {
      for (const event of added) events.push({ ...copyOf(event), position: positionOf(dropped + events.length) })
      dropped += events.splice(0, events.length - keep).length
    },

    async read(query) {
      const { before, after } = query
      const candidates = after === undefined ? newestFirst(numberOf(before)) : oldestFirst(numberOf(after))
      const page = pageOf(candidates, query)
      return { ...page, events: page.events.map(event => ({ ...event, ...copyOf(event) })) }
    },

    clear() {
      dropped += events.splice(0).length
    },
  }
}

/** Neither side sees what the other does to its bytes. */
function copyOf({ value, tags }: TrailEvent): TrailEvent {
  return { value: new Uint8Array(value), tags: [...tags] }
}
