// What becomes of each claim of a user when a token refresh asks the provider again.

import assert from 'node:assert/strict'
import test from 'node:test'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { mapRefreshedUser, type UserBefore } from '../../src/provider/refreshed-user.ts'
import { mapUser } from '../../src/provider/user.ts'

const PLAN = planNamedProvider('p', { preset: 'oidc', clientId: 'c', clientSecret: 's' })
const ID_TOKEN = { sub: 'u', dept: 'ops' }
const USER_INFO = { sub: 'u', preferred_username: 'lisi', groups: ['admins'], phone_number: '1', level: 7 }

function before({ droppedClaims = [] }: { droppedClaims?: readonly string[] } = {}): UserBefore {
  const { userInfo, groups, claims, exclusiveClaims } = mapUser({ userinfo: USER_INFO, id_token: ID_TOKEN }, PLAN)
  const stored = Object.entries(claims).filter(([name]) => !droppedClaims.includes(name))
  const isLost = (path: string) => droppedClaims.includes(path)
  return { userInfo, groups, claims: Object.fromEntries(stored), exclusiveClaims, isLost }
}

test('a refresh without an id_token takes new claims, keeps missing groups and id_token claims, and drops other missing ones', () => {
  const userinfo = { sub: 'u', preferred_username: 'lisi', phone_number: '2' }
  const { claims, groups, userInfo, unknownClaims } = mapRefreshedUser({ userinfo }, PLAN, before())
  assert.deepEqual(claims, { ...userinfo, dept: 'ops', groups: ['admins'] })
  assert.deepEqual([groups, userInfo.phone_number, unknownClaims], [['admins'], '2', []])
})

test('a claim that would be kept but was not stored stays unknown, and a requirement on it does not fail', () => {
  const plan = { ...PLAN, require: { dept: ['finance'] } }
  const userinfo = { sub: 'u', preferred_username: 'lisi' }
  const { claims, unknownClaims } = mapRefreshedUser({ userinfo }, plan, before({ droppedClaims: ['dept'] }))
  assert.deepEqual([claims.dept, unknownClaims], [undefined, ['dept']])
  assert.throws(() => mapRefreshedUser({ userinfo }, plan, before()), { name: 'MenshenError' })
})

test('an empty group list replaces the old groups, and a claim named in _claim_names is kept', () => {
  const userinfo = { sub: 'u', preferred_username: 'lisi', groups: [], _claim_names: { level: 'src1' } }
  const { claims, groups } = mapRefreshedUser({ userinfo }, PLAN, before())
  assert.deepEqual([groups, claims.level], [[], 7])
})
