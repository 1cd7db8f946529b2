// The reporter for chosen files. A test that lacks a program is skipped by an exception: it is shown as skipped, not as failed.
import { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { spec } from 'node:test/reporters'

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* Readable.from(withSkips(events)).compose(spec())
}

async function* withSkips(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events)
    yield event.type === 'test:fail' && event.data.skip !== undefined
      ? { type: 'test:pass', data: { ...event.data, details: { duration_ms: event.data.details.duration_ms } } }
      : event
}
