// Reads the audit trail: a page of it, the newest first, for the console; or all of it, the oldest first, for the command.

import type { DataKeyring } from '../session/data-keys.ts'
import type { DataKeys } from '../session/record.ts'
import { allPages } from '../stores/pages.ts'
import type { Store } from '../stores/store.ts'
import type { PositionedEvent, TrailQuery } from '../stores/trail.ts'
import { createSerialQueues } from '../util/serial-queues.ts'
import { type AuditEvent, openEvent, TAG_KINDS, type TagKind, tagOf, valuesOf } from './audit-event.ts'

/** An event must match all of them. `user` is the username of the user it happened to, or of the one who did it. */
export type AuditFilter = Partial<Readonly<Record<TagKind, string>>> & {
  /** Milliseconds since the epoch. */
  readonly since?: number
  readonly until?: number
}

export interface FindQuery extends AuditFilter {
  /** A position or a `next`. */
  readonly before?: string
  readonly limit: number
}

export interface FoundEvent extends AuditEvent {
  readonly position: string
}

export interface FoundPage {
  readonly events: readonly FoundEvent[]
  /**
   * The `before` of the next page; absent if there is nothing beyond. With fewer events than the limit, it marks how far the
   * search got: a search takes time, and one page is limited in it.
   */
  readonly next?: string
  /** How many events cannot be opened because their secret is gone. */
  readonly unreadable: number
}

export interface TrailReader {
  find(query: FindQuery): Promise<FoundPage>
  /** All events that match, oldest first. */
  walk(filter: AuditFilter): AsyncGenerator<FoundEvent | 'unreadable'>
}

interface TrailReaderOptions {
  readonly store: Pick<Store, 'trail'>
  readonly keyring: Pick<DataKeyring, 'current'>
}

const MAX_SCANNED = 10_000
/** Skipping reads whole pages, and opening an event takes longer than looking at it. */
const MAX_SKIPPED = 5000
const MAX_OPENED = 2000
const PAGE = 500
/** An instance that had lost its store writes late: among events older than `since` there may be a newer one. */
const MAX_WRITE_DELAY_MS = 3_600_000

export function createTrailReader({ store, keyring }: TrailReaderOptions): TrailReader {
  /** A search takes ten milliseconds: a user who loads the account page 200 times at once must not cause 200 of them. */
  const searches = createSerialQueues<FoundPage>()

  async function search({ before, limit, ...filter }: FindQuery): Promise<FoundPage> {
    const opener = createOpener(filter, await keyring.current())
    const events: FoundEvent[] = []
    let unreadable = 0
    const { until } = filter
    const start: Start = until === undefined ? { next: before } : await skipNewer(store, opener, until, before)
    if (start.isFar) return { events, next: start.next, unreadable }
    let left = until === undefined ? MAX_SCANNED : MAX_OPENED
    let { next } = start
    while (left > 0 && events.length < limit) {
      const wanted = Math.min(limit - events.length, left)
      const query: TrailQuery = { ...opener.tag, limit: wanted, scan: left }
      const page = await store.trail.read(next === undefined ? query : { ...query, before: next })
      for (const positioned of page.events) {
        const event = opener.open(positioned)
        if (event === 'unreadable') unreadable++
        else if (event === 'too old') return { events, unreadable }
        else if (event) events.push(event)
      }
      // A page that is not full has searched all that it was allowed to.
      left -= page.events.length < wanted ? left : wanted
      next = page.next
      if (next === undefined) return { events, unreadable }
    }
    return next === undefined ? { events, unreadable } : { events, next, unreadable }
  }

  return {
    find: query => searches.join(JSON.stringify(query), () => search(query)),

    async *walk(filter) {
      const opener = createOpener(filter, await keyring.current())
      const read = (after = '') => store.trail.read({ ...opener.tag, after, limit: PAGE, scan: MAX_SCANNED })
      for await (const page of allPages(read))
        for (const positioned of page.events) {
          const event = opener.open(positioned)
          if (event && event !== 'too old') yield event
        }
    },
  }
}

type Start =
  | { readonly next: string | undefined; readonly isFar?: never }
  | { readonly next: string; readonly isFar: true }

/**
 * Finds where events begin that can be as old as `until`. Of each newer page only the oldest event is opened; `isFar` if the
 * search reached the limit of one page first.
 */
async function skipNewer(
  { trail }: Pick<Store, 'trail'>,
  { tag, timeOf }: ReturnType<typeof createOpener>,
  until: number,
  before: string | undefined,
): Promise<Start> {
  let next = before
  for (let scanned = 0; scanned < MAX_SKIPPED; scanned += PAGE) {
    const query = { ...tag, limit: PAGE, scan: PAGE }
    const page = await trail.read(next === undefined ? query : { ...query, before: next })
    const oldest = page.events.at(-1)
    const isNewer = oldest === undefined || (timeOf(oldest) ?? 0) > until + MAX_WRITE_DELAY_MS
    if (page.next === undefined || !isNewer) return { next }
    next = page.next
  }
  return next === undefined ? { next } : { next, isFar: true }
}

/** Opens the events that match a filter, each once. */
function createOpener({ since = 0, until = Number.POSITIVE_INFINITY, ...wanted }: AuditFilter, keys: DataKeys) {
  const kinds = TAG_KINDS.filter(kind => wanted[kind] !== undefined)
  // The store searches for the rarest tag; the others are checked in what it finds.
  const tags = kinds.map(kind => tagOf(kind, wanted[kind] ?? '', keys))
  const [tag] = tags
  const seen = new Set<string>()
  const fits = (event: AuditEvent) => kinds.every(kind => valuesOf(event, kind).includes(wanted[kind] ?? ''))

  return {
    tag: tag === undefined ? {} : { tag },

    timeOf: (positioned: PositionedEvent): number | undefined => openEvent(positioned, keys)?.time,

    open(positioned: PositionedEvent): FoundEvent | 'unreadable' | 'too old' | undefined {
      if (!tags.every(each => positioned.tags.includes(each))) return undefined
      const event = openEvent(positioned, keys)
      if (!event) return 'unreadable'
      if (event.time < since - MAX_WRITE_DELAY_MS) return 'too old'
      if (event.time < since || event.time > until || !fits(event) || seen.has(event.id)) return undefined
      if (seen.size >= MAX_SCANNED) seen.clear()
      seen.add(event.id)
      return { ...event, position: positioned.position }
    },
  }
}

// Events of the audit trail as CSV (RFC 4180), for a spreadsheet.

/** The fields that most events have; all others are in the last column, as JSON. */
const COLUMNS = ['user', 'sub', 'session', 'provider', 'address', 'userAgent', 'reason', 'requestId', 'worker'] as const

/** Without it, Chinese versions of spreadsheet programs assume another encoding. */
const BYTE_ORDER_MARK = '\uFEFF'
/** Spreadsheet programs run text that begins like this as a formula; some also accept the wide signs of Chinese keyboards. */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n]/

export const CSV_HEAD = BYTE_ORDER_MARK + line(['time', 'event', ...COLUMNS, 'more'])

export function csvLine({ time, event, fields }: AuditEvent): string {
  const common: Readonly<Record<string, unknown>> = fields
  const more = Object.entries(fields).filter(([name]) => !COLUMNS.some(column => column === name))
  return line([
    new Date(time).toISOString(),
    event,
    ...COLUMNS.map(name => String(common[name] ?? '')),
    more.length === 0 ? '' : JSON.stringify(Object.fromEntries(more)),
  ])
}

function line(cells: readonly string[]): string {
  return `${cells.map(quoted).join(',')}\r\n`
}

function quoted(cell: string): string {
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell
  return `"${harmless.replaceAll('"', '""')}"`
}
