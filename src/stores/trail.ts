// The part of a store that keeps what happened, in the order in which it happened: the audit trail. It keeps the newest
// events of all processes and machines, and lets go of the others. Kinds are kept apart: when there is no room, the kind with
// most events lets go of its oldest. A flood of one kind never pushes out the others.

export interface TrailEvent {
  /** Opaque to the store. */
  readonly value: Uint8Array
  /** Names that the event can be found by. */
  readonly tags: readonly string[]
  /** What it makes room for and is let go of with. Letters, digits, `-` and `_` only; events without one are a kind too. */
  readonly kind?: string
}

export interface PlacedEvent extends Omit<TrailEvent, 'kind'> {
  /** Its place in the trail: later places are later in the order of their texts. Letters, digits and `-` only. */
  readonly position: string
}

export interface TrailQuery {
  /** Newest first, only those before this position. A text that is no position counts as none. */
  readonly before?: string
  /** Instead of `before`: oldest first, only those behind this position; from the oldest on if it is empty. */
  readonly after?: string
  readonly tag?: string
  /** How many events a page has at most. */
  readonly limit: number
  /** How many events are looked at for it at most. */
  readonly scan: number
}

export interface TrailPage {
  readonly events: readonly PlacedEvent[]
  /** What to give as `before`, or as `after`, for the next page; absent if there is nothing beyond. */
  readonly next?: string
}

export interface Trail {
  /**
   * Adds the events behind all others, in their order and all or none, and lets go of what is beyond `keep`, which is at
   * least 1: the oldest of the kinds that have most. Resolves once they would survive `kill -9`. After an error they may be there or not.
   */
  append(events: readonly TrailEvent[], keep: number): Promise<void>
  /** It can be empty and not the last. */
  read(query: TrailQuery): Promise<TrailPage>
}

/** One that is looked at: without its event if that is none of those that are asked for. */
export interface Candidate {
  readonly position: string
  readonly event: PlacedEvent | undefined
}

/** One page of candidates that come in the order of the query, without looking at more of them than it takes. */
export function pageOf(candidates: Iterable<Candidate>, { tag, limit, scan }: TrailQuery): TrailPage {
  const events: PlacedEvent[] = []
  let looked = 0
  let last: string | undefined
  for (const { position, event } of candidates) {
    if (last !== undefined && (events.length === limit || looked === scan)) return { events, next: last }
    looked++
    last = position
    if (event && (tag === undefined || event.tags.includes(tag))) events.push(event)
  }
  return { events }
}

/** The events of one kind. */
export interface Lane {
  readonly count: number
  /** The place of its newest one. */
  readonly last: number
}

/** How many each lane lets go of, from its oldest on, so that no more than `keep` are left. */
export function surplusOf<Key>(lanes: ReadonlyMap<Key, Lane>, keep: number): Map<Key, number> {
  const counts = [...lanes.values()].map(({ count }) => count)
  const keptUpTo = (level: number) => counts.reduce((sum, count) => sum + Math.min(count, level), 0)
  let [level, above] = [0, Math.max(0, ...counts) + 1]
  while (above - level > 1) {
    const middle = Math.floor((level + above) / 2)
    if (keptUpTo(middle) <= keep) level = middle
    else above = middle
  }
  const larger = [...lanes].filter(([, { count }]) => count > level)
  // What is left over goes to those in which something happened last.
  const favoured = larger.sort(([, one], [, other]) => other.last - one.last).slice(0, keep - keptUpTo(level))
  return new Map(
    larger.map(([key, { count }]) => [key, count - level - (favoured.some(([other]) => other === key) ? 1 : 0)]),
  )
}

/** Candidates of several lanes as one, in the order of their positions: each lane is in that order already. */
export function* merged(
  lanes: readonly Iterable<Candidate>[],
  isBefore: (one: string, other: string) => boolean,
): Generator<Candidate> {
  const heads = lanes.map(lane => {
    const rest = lane[Symbol.iterator]()
    return { rest, next: rest.next() }
  })
  try {
    for (;;) {
      let first: (typeof heads)[number] | undefined
      for (const head of heads)
        if (!head.next.done && (!first || isBefore(head.next.value.position, first.next.value.position))) first = head
      if (!first || first.next.done) return
      yield first.next.value
      first.next = first.rest.next()
    }
  } finally {
    for (const { rest } of heads) rest.return?.()
  }
}

/** Whether a position comes first: the newest ones do, unless the query goes forward. */
export function orderOf({ after }: TrailQuery): (one: string, other: string) => boolean {
  return after === undefined ? (one, other) => one > other : (one, other) => one < other
}

/** So many are looked at before others have their turn. */
const STEP = 1000

/** One page that is read in steps, each of them a shorter page. */
export async function pageInSteps(
  query: TrailQuery,
  readStep: (step: TrailQuery) => Promise<TrailPage>,
): Promise<TrailPage> {
  const events: PlacedEvent[] = []
  let from: Pick<TrailQuery, 'before' | 'after'> = {}
  for (let left = query.scan; ; left -= STEP) {
    const step = { ...query, ...from, limit: query.limit - events.length, scan: Math.min(left, STEP) }
    const { events: found, next } = await readStep(step)
    events.push(...found)
    if (next === undefined) return { events }
    if (events.length >= query.limit || left <= STEP) return { events, next }
    from = query.after === undefined ? { before: next } : { after: next }
  }
}
