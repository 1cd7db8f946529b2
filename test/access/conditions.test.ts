// The conditions of rules on their own: hours in time zones, networks, and what a sign-in has to be like.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createOpenHours, demandsKey, meets, requestFor } from '../../src/access/conditions.ts'
import { answerRuleQuery, readTime } from '../../src/access/rule-query.ts'
import { createRules } from '../../src/access/rules.ts'
import type { Day } from '../../src/config/rule-conditions.ts'
import type { Rule } from '../../src/index.ts'

const WEEK: Day[] = ['mon', 'tue', 'wed', 'thu', 'fri']

function openAt(hours: Parameters<typeof createOpenHours>[0], times: Record<string, boolean>): void {
  const open = createOpenHours(hours)
  for (const [time, expected] of Object.entries(times)) {
    assert.equal(open.isOpen(Date.parse(time)), expected, time)
    // The second time it is remembered.
    assert.equal(open.isOpen(Date.parse(time)), expected, time)
  }
}

test('hours are evaluated in their time zone and include their start but not their end', () => {
  openAt(
    { days: WEEK, from: '08:00', to: '20:00', zone: 'Asia/Shanghai' },
    {
      '2026-11-16T07:59:59.999+08:00': false,
      '2026-11-16T08:00:00+08:00': true,
      '2026-11-16T19:59:59.999+08:00': true,
      '2026-11-16T20:00:00+08:00': false,
      '2026-11-16T09:00:00Z': true,
      '2026-11-16T13:00:00Z': false,
      // A Saturday in Shanghai, while it is Friday in London.
      '2026-11-21T00:30:00Z': false,
      '2026-11-20T23:30:00+08:00': false,
    },
  )
})

test('hours that cross midnight belong to the day on which they begin', () => {
  openAt(
    { days: ['fri'], from: '22:00', to: '06:00', zone: 'Europe/Berlin' },
    {
      '2026-11-20T21:59:00+01:00': false,
      '2026-11-20T22:00:00+01:00': true,
      '2026-11-21T05:59:00+01:00': true,
      '2026-11-21T06:00:00+01:00': false,
      '2026-11-20T05:00:00+01:00': false,
      '2026-11-21T22:30:00+01:00': false,
    },
  )
  // From Saturday to Sunday, where the week of the list wraps.
  openAt(
    { days: ['sat'], from: '22:00', to: '06:00', zone: 'UTC' },
    { '2026-11-22T03:00:00Z': true, '2026-11-23T03:00:00Z': false },
  )
})

test('hours follow local time when daylight saving time begins and ends', () => {
  const night = { from: '01:30', to: '02:30', zone: 'America/New_York' }
  openAt(night, {
    // 02:00 to 03:00 does not exist on this day.
    '2026-03-08T01:45:00-05:00': true,
    '2026-03-08T03:00:00-04:00': false,
    // 01:00 to 02:00 comes twice on this one.
    '2026-11-01T01:45:00-04:00': true,
    '2026-11-01T01:15:00-05:00': false,
    '2026-11-01T01:45:00-05:00': true,
    '2026-11-01T02:15:00-05:00': true,
    '2026-11-01T02:30:00-05:00': false,
  })
  openAt(
    { from: '08:00', to: '09:00', zone: 'Europe/London' },
    { '2026-07-01T07:30:00Z': true, '2026-01-15T07:30:00Z': false },
  )
})

test('hours can cover a whole day in a time zone with a half-hour offset, and every day if they name no days', () => {
  openAt(
    { days: ['sun'], from: '00:00', to: '24:00', zone: 'Asia/Kolkata' },
    {
      '2026-11-21T18:29:00Z': false,
      '2026-11-21T18:30:00Z': true,
      '2026-11-22T18:29:59Z': true,
      '2026-11-22T18:30:00Z': false,
    },
  )
  const week = Array.from({ length: 7 }, (_, day) => `2026-11-${16 + day}`)
  const times = week.flatMap(date => ['00:00:00', '12:00:00', '23:59:59'].map(time => `${date}T${time}+05:30`))
  openAt({ from: '00:00', to: '24:00', zone: 'Asia/Kolkata' }, Object.fromEntries(times.map(time => [time, true])))
})

test('a time with an offset is read as an instant, one without as local time, and any other text is rejected', () => {
  assert.equal(readTime('2026-11-16T09:00+08:00'), Date.parse('2026-11-16T01:00:00Z'))
  assert.equal(readTime('2026-11-16T09:00:30Z'), Date.parse('2026-11-16T09:00:30Z'))
  assert.deepEqual(readTime('2026-11-16T09:00'), { day: 1, minute: 540 })
  assert.deepEqual(readTime('2026-11-22 23:59'), { day: 0, minute: 1439 })
  for (const text of [
    '',
    '09:00',
    '2026-11-16',
    '2026-02-30T09:00',
    '2026-11-16T24:00',
    '2026-11-16T9:00',
    '2026-13-01T09:00',
    'monday',
  ])
    assert.equal(readTime(text), undefined, text)
})

test('the conditions of every interpretation of a path must all be met', () => {
  const rules = createRules([
    { path: '/', roles: ['*'] },
    { path: '/admin', roles: ['*'], networks: ['10.0.0.0/8'] },
    { path: '/pay', roles: ['*'], maxAge: 300 },
    { path: '/pay/admin', roles: ['*'], networks: ['10.0.0.0/8'], amr: ['mfa'] },
  ] satisfies Rule[])
  const ask = (path: string, more: object) =>
    answerRuleQuery(rules, { method: 'GET', path, role: 'common', groups: [], user: '', ...more }).outcome
  for (const path of ['/admin', '/Admin', '/admin.json', '/admin%2Fx', '/x%2f..%2fadmin', '/admin;v=1']) {
    assert.notEqual(ask(path, { from: '192.0.2.1' }), 'admitted', path)
  }
  assert.equal(ask('/admin', { from: '10.9.9.9' }), 'admitted')
  assert.equal(ask('/x', { from: '192.0.2.1' }), 'admitted')
  assert.equal(ask('/pay', { authAge: 900 }), 'step_up')
  assert.equal(ask('/pay%2Fadmin', { authAge: 900, amr: ['mfa'], from: '10.0.0.1' }), 'step_up')
  assert.equal(ask('/pay%2Fadmin', { authAge: 1, amr: ['pwd'], from: '10.0.0.1' }), 'step_up')
  assert.equal(ask('/pay%2Fadmin', { authAge: 1, amr: ['mfa'], from: '192.0.2.1' }), 'refused')
  assert.equal(ask('/pay%2Fadmin', { authAge: 1, amr: ['mfa'], from: '10.0.0.1' }), 'admitted')
})

test('a refusal carries no conditions, even after another caller was admitted to the same path', () => {
  const rules = createRules([{ path: '/admin', roles: ['developer'], networks: ['10.0.0.0/8'] }] satisfies Rule[])
  const [common, developer] = ['common', 'developer'].map(role => ({ role, groups: [], username: 'zhangsan' }))
  for (const path of ['/admin', '/admin/x', '/%61dmin']) {
    const [visitor, refused] = [rules.decide('GET', path, undefined), rules.decide('GET', path, common)]
    assert.equal(rules.decide('GET', path, developer).conditions?.length, 1, path)
    assert.deepEqual(
      [rules.decide('GET', path, undefined), rules.decide('GET', path, common)],
      [visitor, refused],
      path,
    )
    assert.deepEqual([visitor.conditions, refused.conditions], [undefined, undefined], path)
  }
})

test('networks match IPv4 and IPv6 addresses in every notation, and no text that is not an address', () => {
  const rules = createRules([
    { path: '/', public: true, networks: ['10.0.0.0/8', '2001:db8::/32', '::1', '192.0.2.7'] },
  ])
  const outcome = (from: string) =>
    answerRuleQuery(rules, { method: 'GET', path: '/', role: 'visitor', groups: [], user: '', from }).outcome
  for (const address of [
    '10.1.2.3',
    '::ffff:10.1.2.3',
    '::ffff:a01:203',
    '2001:db8:1::9',
    '2001:DB8::',
    '::1',
    '0:0:0:0:0:0:0:1',
    '192.0.2.7',
  ])
    assert.equal(outcome(address), 'admitted', address)
  for (const address of [
    '11.1.2.3',
    '192.0.2.8',
    '2001:db9::1',
    '::2',
    '',
    'unknown',
    '10.1.2',
    '10.1.2.3.4',
    ' 10.1.2.3',
  ])
    assert.equal(outcome(address), 'refused', address)
})

test('only a sign-in that is recent enough and has an accepted acr and amr value meets the requirements of a rule', () => {
  const now = 1_000_000
  const ago = (seconds: number) => now - seconds * 1000
  assert.equal(meets(undefined, { maxAge: 300 }, now), false)
  assert.equal(meets({}, { maxAge: 300 }, now), false)
  assert.equal(meets({ time: ago(304) }, { maxAge: 300 }, now), true)
  assert.equal(meets({ time: ago(331) }, { maxAge: 300 }, now), false)
  assert.equal(meets({ time: ago(1), acr: 'a' }, { acr: ['b', 'c'] }, now), false)
  assert.equal(meets({ acr: 'b' }, { acr: ['b', 'c'] }, now), true)
  assert.equal(meets({ amr: ['pwd', 'otp'] }, { amr: ['otp'] }, now), true)
  assert.equal(meets({ amr: [] }, { amr: ['otp'] }, now), false)
  assert.equal(meets({ time: ago(1), acr: 'b', amr: ['x'] }, { maxAge: 1, acr: ['b'], amr: ['y'] }, now), false)
})

test('the requirements of several rules combine to the shortest maxAge and their common acr values', () => {
  assert.deepEqual(
    requestFor([
      { maxAge: 300, acr: ['a', 'b'] },
      { maxAge: 60, acr: ['b', 'c'] },
    ]),
    { maxAge: 60, acr: ['b'] },
  )
  assert.deepEqual(requestFor([{ acr: ['a'] }, { acr: ['b'] }]), { acr: ['a', 'b'] })
  assert.deepEqual(requestFor([{ amr: ['mfa'] }]), { acr: [] })
  const one = { maxAge: 5, acr: ['a'] }
  assert.equal(demandsKey([one, { amr: ['x'] }]), demandsKey([{ amr: ['x'] }, one, one]))
  assert.notEqual(demandsKey([one]), demandsKey([{ ...one, maxAge: 6 }]))
})
