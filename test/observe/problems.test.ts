// What is wrong now, as the overview's first sentence says it.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { AuditEvent } from '../../src/observe/audit-event.ts'
import { COUNT_NAMES } from '../../src/observe/history.ts'
import { emptySlot } from '../../src/observe/history-slots.ts'
import { currentProblems } from '../../src/observe/problems.ts'

let made = 0
function event(time: number, code: string, fields: AuditEvent['fields']): AuditEvent {
  return { id: String(made++), time, event: code, fields: { provider: 'staff', ...fields } }
}

function failedAt(at: number, times: number) {
  const slot = emptySlot(at)
  slot.counts[COUNT_NAMES.event('upstream_failed')] = times
  return slot
}

const UNREACHABLE = { reason: 'token_error', error: 'provider_unreachable' }

test('a failing provider is reported with the time of the first failure and the number of failures and people', () => {
  const events = [
    event(5, 'sign_in_failed', { ...UNREACHABLE, address: '10.0.0.1' }),
    event(1, 'sign_in_failed', { ...UNREACHABLE, address: '10.0.0.9' }),
    event(2, 'sign_in', { user: 'lisi' }),
    event(4, 'sign_in_failed', { ...UNREACHABLE, address: '10.0.0.1' }),
    event(6, 'session_refresh_failed', {
      reason: 'provider_unreachable',
      error: 'provider_unreachable',
      user: 'zhangsan',
    }),
  ]
  assert.deepEqual(currentProblems(events, []), [
    { kind: 'provider', provider: 'staff', since: 4, failures: 3, people: 2, event: 'sign_in_failed' },
  ])
})

test('a provider that works again is reported as recovered, after all other problems', () => {
  const slots = [failedAt(0, 2), failedAt(60_000, 2)]
  const events = [event(1, 'sign_in_failed', UNREACHABLE), event(2, 'sign_in', {})]
  assert.deepEqual(currentProblems(events, slots), [
    { kind: 'event', code: 'upstream_failed', times: 4, since: 0, last: 60_000, isOver: false },
    {
      ...{ kind: 'recovered', provider: 'staff', since: 1, failures: 1, people: 1 },
      ...{ event: 'sign_in_failed', until: 2 },
    },
  ])
})

test('an event that has not occurred for ten minutes is reported as over, with its first and last time', () => {
  const slots = [failedAt(0, 1), failedAt(60_000, 3), ...[2, 10, 11].map(minute => emptySlot(minute * 60_000))]
  assert.deepEqual(currentProblems([], slots), [
    { kind: 'event', code: 'upstream_failed', times: 4, since: 0, last: 60_000, isOver: true },
  ])
  assert.partialDeepStrictEqual(currentProblems([], slots.slice(0, -1)), [{ isOver: false }])
})

test('failures that users or made-up codes cause are not reported as problems of a provider', () => {
  const reasons = ['access_denied', 'missing_code', 'invalid_state', 'unknown_error', 'callback_error']
  assert.deepEqual(
    currentProblems(
      reasons.map(reason => event(1, 'sign_in_failed', { reason })),
      [],
    ),
    [],
  )
  const madeUp = { reason: 'token_error', error: 'provider_refused' }
  assert.deepEqual(currentProblems([event(1, 'sign_in_failed', madeUp)], []), [])
  assert.deepEqual(
    currentProblems(
      [event(1, 'session_refresh_failed', { reason: 'provider_refused', error: 'provider_refused' })],
      [],
    ),
    [],
  )
})
