// What reaches the log: one line an event, and of repeats a few and their count.
import assert from 'node:assert/strict'
import test from 'node:test'
import { EVENTS } from '../src/events.ts'
import { createEventLog } from '../src/log.ts'
import { createTestLog } from './kit/test-log.ts'

/** An event log with a clock of the test. */
function createLogWithClock() {
  const clock = { now: 0 }
  const { lines, log } = createTestLog()
  const { report, close } = createEventLog(log, () => clock.now)
  return { clock, lines, report, close }
}

test('a repeated event is logged ten times per minute, and the others become one line with their count', () => {
  const { clock, lines, report, close } = createLogWithClock()
  for (let n = 0; n < 25; n++) report('check_refused', { address: '10.0.0.1', reason: 'odd' })
  assert.equal(lines.length, 10)
  clock.now += 60_000
  report('check_refused', { address: '10.0.0.1', reason: 'odd' })
  assert.deepEqual(lines[10]?.fields, { address: '10.0.0.1', count: 15 })
  assert.equal(lines.length, 12, 'and from then on it is written again')
  close()
})

test('repeated events are still reported after the clock is set back', () => {
  const { clock, lines, report, close } = createLogWithClock()
  for (let n = 0; n < 12; n++) report('not_ready')
  clock.now -= 3_600_000
  report('not_ready')
  assert.deepEqual([lines[10]?.fields, lines.length], [{ count: 2 }, 12])
  close()
})

test('events with another code, address or user are not treated as repeats', () => {
  const { lines, report, close } = createLogWithClock()
  for (let n = 0; n < 20; n++) {
    report('check_refused', { address: `10.0.0.${n}` })
    report('sign_in', { user: `user-${n}` })
  }
  report('not_ready')
  assert.equal(lines.length, 41)
  close()
})

test('events of one IPv6 network are repeats, whatever its addresses', () => {
  const { lines, report, close } = createLogWithClock()
  for (let n = 0; n < 1000; n++) report('path_refused', { address: `2001:db8:1:2::${n.toString(16)}`, reason: 'odd' })
  assert.equal(lines.length, 10)
  report('path_refused', { address: '2001:db8:1:3::1', reason: 'odd' })
  for (let n = 0; n < 30; n++) report('path_refused', { address: '2001:db8:1:2::1', user: `user-${n}` })
  assert.equal(lines.length, 41, 'another network and each user are something else')
  close()
  assert.deepEqual(lines.at(-1)?.fields, { address: '2001:db8:1:2::0', count: 990 })
})

test('events without a user are distinguished by sub or session', () => {
  const { lines, report, close } = createLogWithClock()
  const address = '10.0.0.1'
  for (let n = 0; n < 30; n++) {
    report('session_ended', { address, sub: `sub-${n}` })
    report('session_refreshed', { session: `session-${n}` })
  }
  assert.equal(lines.length, 60)
  for (let n = 0; n < 30; n++) report('session_refreshed', { user: 'zhangsan', session: `session-${n}` })
  assert.equal(lines.length, 70, 'a user with many sessions is one user')
  close()
  assert.deepEqual(lines.at(-1)?.fields, { user: 'zhangsan', count: 20 })
})

test('the count of suppressed repeats is logged when the log is closed', () => {
  const { lines, report, close } = createLogWithClock()
  for (let n = 0; n < 12; n++) report('not_ready')
  close()
  assert.deepEqual(lines.at(-1)?.fields, { count: 2 })
})

test('every event has a code in snake_case, a level that the log has, and a unique message', () => {
  const rows = Object.entries(EVENTS)
  const levels: readonly string[] = ['info', 'warn', 'error']
  for (const [code, { level }] of rows) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/)
    assert.ok(levels.includes(level), `${code} ${level}`)
  }
  assert.equal(new Set(rows.map(([, { message: sentence }]) => sentence)).size, rows.length)
})
