// The audit trail of a store: the events of all processes and machines, in the order in which they happened. It keeps the newest
// ones. When it is full, the kind with the most events drops its oldest, so that a flood of one kind never displaces the others.

export interface TrailEvent {
  /** Opaque to the store. */
  readonly value: Uint8Array
  /** The event can be found by these. */
  readonly tags: readonly string[]
  /** Events of one kind displace each other. Letters, digits, `-` and `_` only. Events without a kind are one kind. */
  readonly kind?: string
}

export interface PositionedEvent extends Omit<TrailEvent, 'kind'> {
  /** Later positions sort later as text. Letters, digits and `-` only. */
  readonly position: string
}

export interface TrailQuery {
  /** Newest first, only events before this position. A text that is not a position is ignored. */
  readonly before?: string
  /** Instead of `before`: oldest first, only events after this position; all events if it is empty. */
  readonly after?: string
  readonly tag?: string
  /** The maximum number of events on a page. */
  readonly limit: number
  /** The maximum number of events that are read for it. */
  readonly scan: number
}

export interface TrailPage {
  readonly events: readonly PositionedEvent[]
  /** The `before` or `after` of the next page; absent on the last one. */
  readonly next?: string
}

export interface Trail {
  /**
   * Appends the events in their order, all or none, and drops the oldest of the largest kinds until at most `keep` (1 or more)
   * are left, or `MAX_TRIMMED` more than were added. Resolves once they would survive `kill -9`. After an error it is unknown
   * whether they were written.
   */
  append(events: readonly TrailEvent[], keep: number): Promise<void>
  /** A page can be empty without being the last. */
  read(query: TrailQuery): Promise<TrailPage>
}

/** An event that was read; `event` is absent if the query does not ask for it. */
export interface Candidate {
  readonly position: string
  readonly event: PositionedEvent | undefined
}

/** One page of candidates in the order of the query. It reads no more of them than it needs. */
export function pageOf(candidates: Iterable<Candidate>, { tag, limit, scan }: TrailQuery): TrailPage {
  const events: PositionedEvent[] = []
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

/** How many more events one append can drop than it adds, so that no caller waits long after `keep` became smaller. */
export const MAX_TRIMMED = 1000

/** The events of one kind. */
export interface KindCount {
  readonly count: number
  /** The number of its newest event. */
  readonly last: number
}

/**
 * How many of its oldest events each kind drops after `added` were appended, so that at most `keep` are left. The kind with the most
 * events drops the next one; among equal kinds, the one whose newest event is the oldest. With `keep` 5:
 *
 *   2 sign-ins, 9 refusals, 1 sign-out  →  the 7 oldest refusals are dropped; 2, 2 and 1 are left
 */
export function surplusOf<Kind>(kinds: ReadonlyMap<Kind, KindCount>, keep: number, added: number): Map<Kind, number> {
  const left = [...kinds].map(([kind, { count, last }]) => ({ kind, count, last }))
  const surplus = new Map<Kind, number>()
  const total = left.reduce((sum, { count }) => sum + count, 0)
  for (let n = Math.min(total - keep, added + MAX_TRIMMED); n > 0; n--) {
    const largest = left.reduce((one, other) =>
      other.count > one.count || (other.count === one.count && other.last < one.last) ? other : one,
    )
    largest.count--
    surplus.set(largest.kind, (surplus.get(largest.kind) ?? 0) + 1)
  }
  return surplus
}

/** How many events are read before other work has its turn. */
const STEP = 1000

/** One page that is read in steps, each of them a shorter page. */
export async function pageInSteps(
  query: TrailQuery,
  readStep: (step: TrailQuery) => Promise<TrailPage>,
): Promise<TrailPage> {
  const events: PositionedEvent[] = []
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
