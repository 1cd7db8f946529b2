// The trail in Redis: one stream of all events, and for each kind a list of its event ids, which is used to drop them. An id is the
// time of the event and a counter within that time.

import { createEventReader, packEvent } from '../entry-bytes.ts'
import { type Candidate, pageInSteps, pageOf, type Trail, type TrailPage, type TrailQuery } from '../trail.ts'
import type { Commands, TrailNames } from './commands.ts'

/** Both keys are in one slot of a cluster. */
const TRAIL: TrailNames = ['menshen:trail', 'menshen:{menshen:trail}:kinds']
const [TIME_DIGITS, COUNT_DIGITS] = [16, 10]

type Run = <Result>(work: (connection: { readonly commands: Commands }) => Promise<Result>) => Promise<Result>

export function createRedisTrail(run: Run): Trail {
  return {
    async append(events, keep) {
      const records = events.flatMap(event => [event.kind ?? '', packEvent(event)])
      await run(({ commands }) => commands.appendToTrail(TRAIL, keep, records))
    },

    // Each step has its own deadline: a distant Redis needs more than one for a page that reads 10,000 events.
    read: query => pageInSteps(query, step => run(({ commands }) => readStep(commands, step))),
  }
}

async function readStep(commands: Commands, step: TrailQuery): Promise<TrailPage> {
  const { before, after, tag, limit, scan } = step
  const id = idAt(after ?? before)
  // One more than the page needs, to know whether there is a next page.
  const count = 1 + (tag === undefined ? Math.min(limit, scan) : scan)
  const found =
    after === undefined
      ? await commands.eventsBackwards(TRAIL[0], id ? `(${id}` : '+', count)
      : await commands.events(TRAIL[0], id ? `(${id}` : '-', count)
  const read = createEventReader(tag)
  const candidates = found.map(({ id, message }): Candidate => {
    const position = positionOf(String(id))
    const event = message.event && read(message.event)
    return { position, event: event && { position, ...event } }
  })
  return pageOf(candidates, step)
}

function positionOf(id: string): string {
  const [time = '', count = ''] = id.split('-')
  return `${time.padStart(TIME_DIGITS, '0')}-${count.padStart(COUNT_DIGITS, '0')}`
}

/** `undefined` if it is not a position. 0-0 is not one: in Redis nothing comes before it. */
function idAt(position = ''): string | undefined {
  const [, time, count] = /^(?=.{27}$)0*(\d{1,16})-0*(\d{1,10})$/.exec(position) ?? []
  return time === undefined || !/[1-9]/.test(position) ? undefined : `${time}-${count}`
}
