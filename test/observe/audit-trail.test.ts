// The audit trail from within: what is found by which filter, and what becomes of events while they cannot be written.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { MenshenError } from '../../src/errors.ts'
import type { Report } from '../../src/events.ts'
import { createAudit } from '../../src/observe/audit.ts'
import { createTrailReader, type FindQuery, type FoundPage } from '../../src/observe/audit-trail.ts'
import { newDataKeys } from '../../src/session/data-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Trail } from '../../src/stores/trail.ts'
import { until } from '../kit/until.ts'

const PATIENCE_MS = 60_000
const START = Date.parse('2026-03-01T08:00:00Z')

interface Wishes {
  AUDIT_KEEP?: number
  /** What takes the place of the store's own. */
  append?: (own: Trail) => Trail['append']
}

function openAudit({ AUDIT_KEEP = 20_000, append }: Wishes = {}) {
  const clock = { now: START }
  const { trail: own } = createMemoryStore({ now: () => clock.now })
  const store = { trail: { read: own.read, append: append?.(own) ?? own.append } }
  let keys = newDataKeys()
  const keyring = { current: async () => keys }
  const told: [string, Record<string, unknown>][] = []
  const report: Report = (code, fields = {}) => void told.push([code, fields])
  const settings = { AUDIT_KEEP, AUDIT_FILE: undefined }
  const audit = createAudit({ settings, store, keyring, now: () => clock.now, report })
  const { find } = createTrailReader({ store, keyring })
  return {
    clock,
    told,
    audit,
    find,
    /** The secret is lost. */
    loseKeys() {
      keys = newDataKeys()
    },
    /** The reasons of those found, after everything is written. */
    async found(query: Partial<FindQuery> = {}): Promise<string> {
      await audit.close(PATIENCE_MS)
      return reasonsIn(await find({ limit: 100, ...query }))
    },
  }
}

const reasonsIn = ({ events }: FoundPage) => events.map(({ fields }) => fields.reason ?? '-').join('')

test('events are found by user, sub, code, request, session and time, and by several of them together', async () => {
  const { audit, clock, found } = openAudit()
  audit.onEvent('sign_in', { reason: 0, user: 'lisi', sub: 's1', session: 'one', requestId: 'r1' })
  audit.onEvent('refused', { reason: 1, user: 'lisi', sub: 's1', session: 'one', requestId: 'r2' })
  clock.now += 60_000
  audit.onEvent('sign_in', { reason: 2, user: 'wangwu', sub: 's2', session: 'two', requestId: 'r3' })
  audit.onEvent('session_ended', { reason: 3, user: 'lisi', byUser: 'wangwu', requestId: 'r3' })
  assert.equal(await found(), '3210')
  assert.equal(await found({ user: 'lisi' }), '310')
  assert.equal(await found({ user: 'wangwu' }), '32', 'by what they did, too')
  assert.equal(await found({ sub: 's1' }), '10')
  assert.equal(await found({ user: 's1' }), '', 'a sub is not a name')
  assert.equal(await found({ event: 'sign_in' }), '20')
  assert.equal(await found({ requestId: 'r3' }), '32')
  assert.equal(await found({ session: 'one' }), '10')
  assert.equal(await found({ since: START + 1 }), '32')
  assert.equal(await found({ user: 'lisi', event: 'sign_in' }), '0')
  assert.equal(await found({ user: 'lisi', event: 'sign_in', since: START + 1 }), '')
  assert.equal(await found({ user: 'nobody' }), '')
})

test('pages go from newer to older events, and the last one has no next', async () => {
  const { audit, find } = openAudit()
  for (let n = 0; n < 10; n++) audit.onEvent('refused', { reason: n, user: n % 2 ? 'odd' : 'even' })
  await audit.close(PATIENCE_MS)
  const pages: string[] = []
  let before: string | undefined = ''
  while (before !== undefined) {
    const page: FoundPage = await find({ limit: 2, user: 'odd', before })
    pages.push(reasonsIn(page))
    before = page.next
  }
  assert.deepEqual(pages, ['97', '53', '1'])
})

test('a page searches 10,000 events, and the next page continues where it stopped', async () => {
  const { audit, find } = openAudit()
  audit.onEvent('refused', { reason: 'rare', user: 'rare' })
  for (let n = 0; n < 12_000; n++) {
    audit.onEvent('refused', { user: 'usual' })
    // The bound of those that wait is another test's.
    if (n % 100 === 0) await pause(20)
  }
  await audit.close(PATIENCE_MS)
  const first = await find({ limit: 5, user: 'rare' })
  assert.deepEqual([reasonsIn(first), typeof first.next], ['', 'string'])
  const second = await find({ limit: 5, user: 'rare', before: first.next ?? '' })
  assert.deepEqual([reasonsIn(second), second.next], ['rare', undefined])
})

test('only audited events are kept, with plain fields only, and long texts are cut', async () => {
  const { audit, find } = openAudit()
  const fields = { user: '名'.repeat(2000), err: Object.assign(new TypeError('of the provider'), { code: 'EX' }) }
  audit.onEvent('session_refreshed', { user: 'lisi' })
  audit.onEvent('sign_in_failed', { ...fields, nested: { secret: 1 }, list: ['x'], none: undefined, nan: Number.NaN })
  audit.onEvent('sign_in_failed', { user: 'a\ud800', err: new TypeError('of the provider') })
  await audit.close(PATIENCE_MS)
  const { events } = await find({ limit: 10 })
  assert.deepEqual(
    events.map(({ fields }) => fields),
    [
      { user: 'a\ufffd', err: 'TypeError' },
      { user: '名'.repeat(500), err: 'EX' },
    ],
  )
})

test('events that can no longer be decrypted are counted as unreadable', async () => {
  const { audit, find, loseKeys } = openAudit()
  audit.onEvent('refused', { user: 'lisi' })
  await audit.close(PATIENCE_MS)
  loseKeys()
  assert.deepEqual(await find({ limit: 10 }), { events: [], unreadable: 1 })
})

test('events that arrive during a write are written together with the next one', async () => {
  const sizes: number[] = []
  const held = Promise.withResolvers<void>()
  const append =
    (own: Trail): Trail['append'] =>
    async (events, keep) => {
      sizes.push(events.length)
      await held.promise
      return own.append(events, keep)
    }
  const { audit, found } = openAudit({ append })
  audit.onEvent('refused', { reason: 0 })
  while (sizes.length === 0) await nextTurn()
  for (let n = 1; n < 8; n++) audit.onEvent('refused', { reason: n })
  held.resolve()
  assert.equal(await found(), '76543210')
  assert.deepEqual(sizes, [1, 7])
})

test('events that the store refused are written later, in order and once, and failure and recovery are reported', async () => {
  let failures = 3
  const append =
    (own: Trail): Trail['append'] =>
    async (events, keep) => {
      // After an error they may be there or not.
      if (failures === 2) await own.append(events, keep)
      if (failures-- > 0) throw new MenshenError('store_unavailable', 'The store is away.')
      return own.append(events, keep)
    }
  const { audit, found, told } = openAudit({ append })
  for (let n = 0; n < 3; n++) audit.onEvent('refused', { reason: n })
  assert.equal(await found(), '210')
  assert.deepEqual(told, [
    [
      'audit_not_written',
      { to: 'store', count: 3, dropped: 0, error: 'store_unavailable', detail: 'The store is away.' },
    ],
    ['audit_written_again', { to: 'store', dropped: 0 }],
  ])
})

test('while the store is unavailable, the first 10,000 events wait, others are counted, and a shutdown reports the loss', async () => {
  const append = () => async () => {
    throw new MenshenError('store_unavailable', 'The store is away.')
  }
  const { audit, told } = openAudit({ append })
  for (let n = 0; n < 10_007; n++) audit.onEvent('refused', { user: 'lisi' })
  await audit.close(0)
  assert.deepEqual(told.at(-1), ['audit_not_written', { to: 'store', count: 10_000, dropped: 7, reason: 'closing' }])
})

test('a flood of denied requests displaces no other events, neither in the trail nor while the store is unavailable', async () => {
  let isAway = true
  const append =
    (own: Trail): Trail['append'] =>
    async (events, keep) => {
      if (isAway) throw new MenshenError('store_unavailable', 'The store is away.')
      return own.append(events, keep)
    }
  const { audit, find } = openAudit({ AUDIT_KEEP: 100, append })
  audit.onEvent('sign_in', { user: 'first' })
  for (let n = 0; n < 10_500; n++) audit.onEvent('refused', { user: 'lisi' })
  audit.onEvent('sign_in', { user: 'second' })
  audit.onEvent('sign_out', { user: 'first' })
  isAway = false
  await until(async () => (await find({ limit: 1 })).events[0]?.event === 'sign_out')
  await audit.close(PATIENCE_MS)
  const ofOthers = (await find({ limit: 200 })).events.filter(({ event }) => event !== 'refused')
  assert.deepEqual(
    ofOthers.map(({ event, fields }) => `${event} ${fields.user}`),
    ['sign_out first', 'sign_in second', 'sign_in first'],
  )
  assert.equal((await find({ limit: 200 })).events.length, 100)
})

test('ten failed sign-ins per minute, network and reason are kept, and the others as one event with their count', async () => {
  const { audit, clock, find } = openAudit()
  const fail = (address: string, reason: string, times: number) => {
    for (let n = 0; n < times; n++)
      audit.onEvent('sign_in_failed', { address, reason, error: `made-up-${n}`, requestId: `r${n}` })
  }
  fail('192.0.2.1', 'unknown_error', 600)
  fail('192.0.2.1', 'access_denied', 10)
  for (let n = 0; n < 30; n++) fail(`2001:db8::${n}`, 'missing_code', 1)
  fail('192.0.2.2', 'unknown_error', 1)
  clock.now += 60_000
  fail('192.0.2.1', 'unknown_error', 3)
  await audit.close(PATIENCE_MS)
  const { events } = await find({ limit: 100 })
  const counted = events.filter(({ fields }) => fields.count !== undefined)
  assert.deepEqual(counted.map(({ fields }) => [fields.address, fields.reason, fields.count]).sort(), [
    ['192.0.2.1', 'unknown_error', 590],
    ['2001:db8::0', 'missing_code', 20],
  ])
  assert.equal(events.length - counted.length, 10 + 10 + 10 + 1 + 3)
})

test('a reload that changed nothing is not kept in the audit trail', async () => {
  const { audit, find } = openAudit()
  for (const changed of ['nothing', 'rules', 'nothing']) audit.onEvent('config_reloaded', { changed, rules: 1 })
  await audit.close(PATIENCE_MS)
  const { events } = await find({ limit: 100 })
  assert.deepEqual(
    events.map(({ fields }) => fields.changed),
    ['rules'],
  )
})

test('AUDIT_KEEP=0 keeps nothing', async () => {
  const { audit, found } = openAudit({ AUDIT_KEEP: 0 })
  audit.onEvent('refused', { reason: 0 })
  assert.equal(await found(), '')
})

test('a search with until finds events behind many newer ones', async () => {
  const { audit, clock, found, find } = openAudit()
  audit.onEvent('sign_in', { reason: 'a' })
  clock.now += 60_000
  audit.onEvent('sign_in', { reason: 'b' })
  clock.now += 4 * 3_600_000
  for (let n = 0; n < 1700; n++) audit.onEvent('refused', { reason: 'new' })
  assert.equal(await found({ until: START + 30_000 }), 'a')
  assert.equal(await found({ until: START + 60_000, limit: 1 }), 'b')
  const { next = '' } = await find({ until: START + 60_000, limit: 1 })
  assert.equal(reasonsIn(await find({ until: START + 60_000, limit: 1, before: next })), 'a')
  assert.equal(await found({ until: START - 1 }), '')
})

test('parallel searches for the same events are one search, and those that begin during it are one more', async () => {
  const { trail } = createMemoryStore({ now: () => START })
  const keys = newDataKeys()
  let reads = 0
  const read: Trail['read'] = async query => {
    reads++
    await nextTurn()
    return trail.read(query)
  }
  const { find } = createTrailReader({ store: { trail: { ...trail, read } }, keyring: { current: async () => keys } })
  const query = { event: 'sign_in', sub: 's1', limit: 50 }
  const searches = Array.from({ length: 200 }, () => find(query))
  searches.push(find({ ...query, sub: 's2' }))
  for (const page of await Promise.all(searches)) assert.deepEqual(page.events, [])
  assert.equal(reads, 3)
})
