// The trail in Redis: a stream, which gives each event an id of its time and counts on within it.

import type { PlacedEvent, Trail, TrailPage, TrailQuery } from '../trail.ts'
import type { Commands } from './commands.ts'
import type { TrailReply } from './scripts.ts'

const TRAIL = 'menshen:trail'
/** So many events are looked at in one step of Redis, which does nothing else meanwhile. */
const STEP = 1000
const [TIME_DIGITS, COUNT_DIGITS] = [16, 10]

type Ask = <Result>(work: (connection: { readonly commands: Commands }) => Promise<Result>) => Promise<Result>

export function createRedisTrail(ask: Ask): Trail {
  return {
    append(events, keep) {
      const args = events.flatMap(({ value, tags }) => [String(tags.length), Buffer.from(value), ...tags])
      return ask(async ({ commands }) => {
        await commands.appendTrail(TRAIL, [String(keep), ...args])
      })
    },

    read: query => ask(({ commands }) => readPage(commands, query)),
  }
}

async function readPage(commands: Commands, query: TrailQuery): Promise<TrailPage> {
  const { after, limit, scan } = query
  const events: PlacedEvent[] = []
  let from = after ?? query.before
  for (let looked = 0; ; ) {
    const most = Math.min(scan - looked, query.tag === undefined ? limit - events.length : STEP)
    const reply = await commands.readTrail(TRAIL, argumentsOf(query, from, most, limit - events.length))
    const { events: found, next } = readReply(reply)
    events.push(...found)
    looked += most
    if (next === undefined) return { events }
    if (events.length >= limit || looked >= scan) return { events, next }
    from = next
  }
}

function argumentsOf({ after, tag }: TrailQuery, from: string | undefined, most: number, limit: number): string[] {
  const id = idAt(from)
  const range =
    after === undefined
      ? ['XREVRANGE', id ? `(${id}` : '+', '-'] //
      : ['XRANGE', id ? `(${id}` : '-', '+']
  return [...range, String(most), String(limit), ...(tag === undefined ? [] : [tag])]
}

function readReply([next, found]: TrailReply): TrailPage {
  const events = found.map(([id, [, value = Buffer.alloc(0), ...tags]]) => ({
    position: positionOf(String(id)),
    // Replies are views of whatever came through the socket, and would keep all of it in memory.
    value: new Uint8Array(value),
    tags: tags.filter((_, n) => n % 2 === 1).map(String),
  }))
  return next.length > 0 ? { events, next: positionOf(String(next)) } : { events }
}

function positionOf(id: string): string {
  const [time = '', count = ''] = id.split('-')
  return `${time.padStart(TIME_DIGITS, '0')}-${count.padStart(COUNT_DIGITS, '0')}`
}

/** `undefined` if it is no position; there is nothing before or at 0-0, which Redis takes for a mistake. */
function idAt(position: string | undefined): string | undefined {
  const [, time, count] = /^0*(\d{1,16})-0*(\d{1,10})$/.exec(position ?? '') ?? []
  return position?.length === TIME_DIGITS + 1 + COUNT_DIGITS && /[1-9]/.test(position) ? `${time}-${count}` : undefined
}
