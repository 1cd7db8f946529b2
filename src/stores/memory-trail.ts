// The trail of the memory store.

import { numberOf, positionOf } from './sequence.ts'
import {
  type Candidate,
  merged,
  orderOf,
  type PlacedEvent,
  pageOf,
  surplusOf,
  type Trail,
  type TrailEvent,
} from './trail.ts'

type Numbered = TrailEvent & { readonly number: number }

export function createMemoryTrail(): Trail & { clear(): void } {
  /** By kind, the oldest first. */
  const lanes = new Map<string, Numbered[]>()
  let last = 0

  function* newestFirst(events: readonly Numbered[], before = Number.POSITIVE_INFINITY): Generator<Candidate> {
    for (const event of events.toReversed()) if (event.number < before) yield candidate(event)
  }

  function* oldestFirst(events: readonly Numbered[], after = -1): Generator<Candidate> {
    for (const event of events) if (event.number > after) yield candidate(event)
  }

  function add(event: TrailEvent): void {
    const { kind = '' } = event
    const numbered = { ...copyOf(event), number: ++last }
    const lane = lanes.get(kind)
    if (lane) lane.push(numbered)
    else lanes.set(kind, [numbered])
  }

  function trim(keep: number): void {
    const counts = [...lanes].map(
      ([kind, events]) => [kind, { count: events.length, last: events.at(-1)?.number ?? 0 }] as const,
    )
    for (const [kind, surplus] of surplusOf(new Map(counts), keep)) lanes.get(kind)?.splice(0, surplus)
  }

  return {
    async append(added, keep) {
      for (const event of added) add(event)
      trim(keep)
    },

    async read(query) {
      const { before, after } = query
      const ofLane = (events: readonly Numbered[]) =>
        after === undefined ? newestFirst(events, numberOf(before)) : oldestFirst(events, numberOf(after))
      const page = pageOf(merged([...lanes.values()].map(ofLane), orderOf(query)), query)
      return { ...page, events: page.events.map(event => ({ ...event, ...copyOf(event) })) }
    },

    clear() {
      lanes.clear()
    },
  }
}

function candidate({ number, value, tags }: Numbered): Candidate & { readonly event: PlacedEvent } {
  const position = positionOf(number)
  return { position, event: { position, value, tags } }
}

/** Neither side sees what the other does to its bytes. */
function copyOf({ value, tags }: TrailEvent): TrailEvent {
  return { value: new Uint8Array(value), tags: [...tags] }
}
