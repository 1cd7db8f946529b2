// The contract of a store's trail as a list of sentences. Every store runs them.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { PositionedEvent, Trail, TrailEvent, TrailPage, TrailQuery } from '../../src/stores/trail.ts'
import type { OpenedStore } from './conformance.ts'

const KEEP = 1000
const ALL = { limit: 100, scan: 100 }

export function trailConformance(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} meets the trail contract:`, () => {
    let opened: OpenedStore
    let trail: Trail
    beforeEach(async () => {
      opened = await open()
      trail = opened.store.trail
    })
    afterEach(() => opened.close())

    const append = (...events: TrailEvent[]) => trail.append(events, KEEP)

    test('an empty trail returns an empty page from either end', async () => {
      for (const query of [{}, { before: '' }, { after: '' }])
        assert.deepEqual(await trail.read({ ...ALL, ...query }), { events: [] })
    })

    test('events are returned complete, newest first', async () => {
      const value = new Uint8Array(1000).map((_, n) => n)
      await append(event('a', 'x', '', '标签 "with" space\0'), { value, tags: [] })
      await append(event(''))
      const { events } = await trail.read(ALL)
      assert.deepEqual(
        events.map(({ value, tags }) => ({ value: new Uint8Array(value), tags })),
        [event(''), { value, tags: [] }, event('a', 'x', '', '标签 "with" space\0')],
      )
    })

    test('positions are unique, sort in the order of the events and are safe in a URL', async () => {
      await Promise.all(['a', 'b', 'c', 'd'].map(text => append(event(text), event(text))))
      const positions = (await trail.read({ ...ALL, after: '' })).events.map(({ position }) => position)
      assert.equal(new Set(positions).size, 8)
      assert.deepEqual(positions.toSorted(), positions)
      for (const position of positions) assert.match(position, /^[\w-]+$/)
    })

    test('the events of one append stay together and in order, even with concurrent appends', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, n) => append(event(`${n}a`), event(`${n}b`))))
      const texts = textsIn(await trail.read({ ...ALL, after: '' }))
      assert.equal(texts.length, 40)
      for (let n = 0; n < 40; n += 2) assert.equal(texts[n]?.replace('a', 'b'), texts[n + 1])
    })

    test('pages go back in time, and the last one has no next', async () => {
      await append(...'0123456789'.split('').map(text => event(text)))
      const pages = (limit: number) => pagesOf(trail, { limit, scan: 100 })
      assert.deepEqual(await pages(4), ['9876', '5432', '10'])
      assert.deepEqual(await pages(5), ['98765', '43210'])
      assert.deepEqual(await pages(100), ['9876543210'])
    })

    test('with `after`, pages go forward in time, and events added in between are at the end', async () => {
      await append(...'01234'.split('').map(text => event(text)))
      const first = await trail.read({ after: '', limit: 3, scan: 100 })
      assert.deepEqual(textsIn(first), ['0', '1', '2'])
      await append(event('5'))
      const rest = await trail.read({ after: first.next ?? 'none', limit: 3, scan: 100 })
      assert.deepEqual([textsIn(rest), rest.next], [['3', '4', '5'], undefined])
      const last = rest.events.at(-1)?.position ?? ''
      assert.deepEqual(await trail.read({ ...ALL, after: last }), { events: [] })
      await append(event('6'))
      assert.deepEqual(textsIn(await trail.read({ ...ALL, after: last })), ['6'])
    })

    test('with a tag, only events with that tag are returned', async () => {
      await append(event('0', 'even'), event('1', 'odd', 'one'), event('2', 'even'), event('3', 'odd'), event('4'))
      assert.deepEqual(textsIn(await trail.read({ ...ALL, tag: 'odd' })), ['3', '1'])
      assert.deepEqual(textsIn(await trail.read({ ...ALL, tag: 'odd', after: '' })), ['1', '3'])
      assert.deepEqual(await pagesOf(trail, { tag: 'even', limit: 1, scan: 100 }), ['2', '0'])
      for (const tag of ['od', '', 'oddone', 'o"d', ','])
        assert.deepEqual(await trail.read({ ...ALL, tag }), { events: [] })
    })

    test('a page examines at most `scan` events, and the next page continues there', async () => {
      await append(...'0123456789'.split('').map(text => event(text, text === '1' ? 'rare' : 'usual')))
      assert.deepEqual(await pagesOf(trail, { tag: 'rare', limit: 5, scan: 4 }), ['', '', '1'])
      assert.deepEqual(await pagesOf(trail, { limit: 5, scan: 4 }), ['9876', '5432', '10'])
    })

    test('the oldest events beyond `keep` are dropped, also when `keep` becomes smaller', async () => {
      const kept = async () => textsIn(await trail.read({ ...ALL, after: '' })).join('')
      for (const text of '01234') await trail.append([event(text)], 3)
      assert.equal(await kept(), '234')
      await trail.append([event('5'), event('6'), event('7'), event('8')], 3)
      assert.equal(await kept(), '678')
      await trail.append([event('9')], 2)
      assert.equal(await kept(), '89')
      await trail.append([], 1)
      assert.equal(await kept(), '9')
    })

    test('after `keep` becomes much smaller, old events are dropped step by step and no newer event is lost', async () => {
      await trail.append(
        Array.from({ length: 5000 }, (_, n) => event(`${n}`)),
        10_000,
      )
      const counts: number[] = []
      for (let n = 0; n < 6; n++) {
        await trail.append([event('new')], 10)
        const { events } = await trail.read({ after: '', limit: 10_000, scan: 10_000 })
        counts.push(events.length)
        assert.equal(events.filter(each => textOf(each) === 'new').length, n + 1)
      }
      assert.deepEqual(counts, [4000, 3000, 2000, 1000, 10, 10])
    })

    test('a flood of one kind drops its own oldest events, and events of other kinds keep their positions', async () => {
      const kept = async (query: Partial<TrailQuery> = {}) => textsIn(await trail.read({ ...ALL, ...query })).join('')
      const refused = (text: string) => ({ ...event(text), kind: 'refused' })
      await trail.append([{ ...event('S'), kind: 'sign_in' }, refused('0')], 5)
      await trail.append([event('n')], 5)
      for (const text of '12345678') await trail.append([refused(text)], 5)
      assert.equal(await kept({ after: '' }), 'Sn678')
      assert.equal(await kept(), '876nS')
      await trail.append([...'abcdefgh'].map(refused), 5)
      assert.equal(await kept({ after: '' }), 'Snfgh')
      await trail.append([{ ...event('T'), kind: 'sign_in' }], 5)
      assert.equal(await kept({ after: '' }), 'SnghT')
      assert.deepEqual(await pagesOf(trail, { limit: 2, scan: 100 }), ['Th', 'gn', 'S'])
      assert.deepEqual(await pagesOf(trail, { limit: 5, scan: 2 }), ['Th', 'gn', 'S'])
    })

    test('among kinds with equally many events, the oldest event is dropped first', async () => {
      for (const text of 'abcd') await trail.append([{ ...event(text), kind: text }], 3)
      assert.deepEqual(textsIn(await trail.read({ ...ALL, after: '' })), ['b', 'c', 'd'])
      await trail.append([{ ...event('e'), kind: 'b' }], 1)
      assert.deepEqual(textsIn(await trail.read(ALL)), ['e'])
      await trail.append([event('f')], 10)
      assert.deepEqual(textsIn(await trail.read(ALL)), ['f', 'e'])
    })

    test('10,000 refusals do not displace any sign-in', async () => {
      const signIns = Array.from({ length: 50 }, (_, n) => ({ ...event(`in${n}`), kind: 'sign_in' }))
      await trail.append(signIns, KEEP)
      const refusals = Array.from({ length: 250 }, (_, n) => ({ ...event(`no${n}`), kind: 'refused' }))
      for (let n = 0; n < 10_000; n += refusals.length) await trail.append(refusals, KEEP)
      const { events } = await trail.read({ after: '', limit: 2 * KEEP, scan: 2 * KEEP })
      assert.equal(events.length, KEEP)
      assert.deepEqual(
        events.slice(0, 50).map(each => textOf(each)),
        signIns.map(each => textOf(each)),
      )
      assert.equal(textsIn(await trail.read(ALL))[0], 'no249')
      const positions = events.map(({ position }) => position)
      assert.deepEqual(positions.toSorted(), positions)
    })

    test('paging continues from the same position if events are added and dropped in between', async () => {
      await append(...'01234567'.split('').map(text => event(text)))
      const { next } = await trail.read({ limit: 2, scan: 100 })
      await trail.append([event('8'), event('9')], 7)
      assert.deepEqual(textsIn(await trail.read({ ...ALL, before: next ?? '' })), ['5', '4', '3'])
      const { events } = await trail.read(ALL)
      await trail.append([event('a')], 1)
      const gone = events.at(-1)?.position ?? ''
      assert.deepEqual(textsIn(await trail.read({ ...ALL, after: gone })), ['a'])
      assert.deepEqual(await trail.read({ ...ALL, before: gone }), { events: [] })
    })

    test('a `before` or `after` that is not a position is ignored', async () => {
      await append(event('a'), event('b'))
      for (const odd of ['', '-', '+', '(1', '$', '1', '0-0', '-1', '1e3', 'NaN', '9'.repeat(5000), '\0', '中']) {
        assert.deepEqual(textsIn(await trail.read({ ...ALL, before: odd })), ['b', 'a'], odd)
        assert.deepEqual(textsIn(await trail.read({ ...ALL, after: odd })), ['a', 'b'], odd)
      }
    })

    test('changing the bytes that were given or read does not change the stored event', async () => {
      const given = event('safe')
      const appending = append(given)
      given.value.fill(0)
      await appending
      const [found] = (await trail.read(ALL)).events
      await append(event('x'.repeat(1000)))
      await trail.read(ALL)
      assert.equal(found && textOf(found), 'safe')
      found?.value.fill(0)
      assert.equal(textsIn(await trail.read(ALL))[1], 'safe')
    })

    test('events of the trail are neither counted nor listed as entries', async () => {
      await append(event('a', 'label'))
      assert.equal(await opened.store.count(), 0)
      assert.deepEqual(await opened.store.list({ label: 'label', limit: 10 }), { entries: [] })
    })
  })
}

function event(text: string, ...tags: string[]): TrailEvent {
  return { value: new TextEncoder().encode(text), tags }
}

function textOf({ value }: TrailEvent): string {
  return new TextDecoder().decode(value)
}

function textsIn({ events }: TrailPage): string[] {
  return events.map((each: PositionedEvent) => textOf(each))
}

async function pagesOf(trail: Trail, query: TrailQuery): Promise<string[]> {
  const pages: string[] = []
  let before: string | undefined
  do {
    const page = await trail.read(before === undefined ? query : { ...query, before })
    pages.push(textsIn(page).join(''))
    before = page.next
  } while (before !== undefined)
  return pages
}
