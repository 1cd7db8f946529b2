// The part of a store that keeps what happened, in the order in which it happened: the audit trail. It keeps the newest
// events of all processes and machines, and lets go of the others.

export interface TrailEvent {
  /** Opaque to the store. */
  readonly value: Uint8Array
  /** Names that the event can be found by. */
  readonly tags: readonly string[]
}

export interface PlacedEvent extends TrailEvent {
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
   * Adds the events behind all others, in their order and all or none, and lets go of the oldest beyond `keep`, which is at
   * least 1. Resolves once they would survive `kill -9`. After an error they may be there or not.
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
