// What is wrong now, as the overview's first sentence says it.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { AuditEvent } from '../../src/observe/audit-event.ts'
import { COUNTED } from '../../src/observe/history.ts'
import { emptySlot } from '../../src/observe/history-slots.ts'
import { currentProblems } from '../../src/observe/problems.ts'

let made = 0
function event(time: number, code: string, fields: AuditEvent['fields']): AuditEvent {
  return { id: String(made++), time, event: code, fields: { provider: 'staff', ...fields } }
}

const UNREACHABLE = { reason: 'token_error', error: 'provider_unreachable' }

test('a provider that fails is named, since when, how often, and for how many', () => {
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
    { kind: 'provider', provider: 'staff', since: 4, failures: 3, people: 2 },
  ])
})

test('one that works again is said to, behind everything else', () => {
  const slot = emptySlot(0)
  slot.counts[COUNTED.event('upstream_failed')] = 2
  const events = [event(1, 'sign_in_failed', UNREACHABLE), event(2, 'sign_in', {})]
  assert.deepEqual(currentProblems(events, [slot, slot]), [
    { kind: 'event', code: 'upstream_failed', times: 4 },
    { kind: 'recovered', provider: 'staff', failures: 1, until: 2 },
  ])
})

test('what users do themselves is no problem of a provider', () => {
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
