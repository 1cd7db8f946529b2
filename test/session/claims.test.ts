// A role follows from what the provider said at sign-in and from the roles of the moment, whatever they were in between.
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { inspect } from 'node:util'
import type { RoleConfig } from '../../src/config/file.ts'
import { readSettings } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { mapRefreshedUser, type UserBefore } from '../../src/provider/refreshed-user.ts'
import type { TokenSet } from '../../src/provider/token.ts'
import { type MappedUser, RequirementError } from '../../src/provider/user.ts'
import { isUnknownClaim } from '../../src/session/claims.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { packRecord, unpackRecord } from '../../src/session/sealing.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { recordKey } from '../../src/session/ticket.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'

const USER_INFO = { sub: 's', ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '' }
const BY_NAME: RoleConfig = { role: 'ops', username: ['lisi'] }
const BY_CLAIM: RoleConfig = { role: 'ops', claim: { 'dept.name': ['运维部'] } }

const PLAN = planNamedProvider('id', { preset: 'oauth2', userInfoFrom: ['userinfo', 'id_token'] })

type RefreshUser = (before: UserBefore) => MappedUser
type SignInTokens = Pick<TokenSet, 'accessToken' | 'refreshToken' | 'idToken'>

function open(t: TestContext, roles: readonly RoleConfig[]) {
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const events: [event: string, fields: object][] = []
  const report = (event: string, fields: object = {}) => void events.push([event, fields])
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('client-secret') })
  const keyring = createDataKeyring({ store, keys, now, report })
  let refreshes = 0
  const refresh = async () => {
    const n = ++refreshes
    return { accessToken: `at-${n}`, refreshToken: `rt-${n}`, expiresIn: 7200, receivedAt: now() }
  }
  let answer: RefreshUser | undefined
  const refreshUser = async (_: unknown, before: UserBefore) => answer?.(before) ?? assert.fail()
  const newProvider = () => ({
    plan: { refreshLead: 'fixed' as const },
    refresh,
    ...(answer && { refreshUser }),
    signOut: async () => {},
  })
  let provider = newProvider()
  const providers = { get: () => provider }
  const sessions = createSessions({ store, providers, roles, keyring, settings: readSettings({}), now, report })
  return {
    store,
    events,
    sessions,
    /** What the provider says after a refresh. */
    refreshUser: (next: RefreshUser) => {
      answer = next
      provider = newProvider()
    },
    replaceProvider: () => {
      provider = newProvider()
    },
    /** A reload of the configuration. */
    use: (roles: readonly RoleConfig[]) => sessions.use({ providers, roles }),
    async signIn(
      claims: object,
      username = 'lisi',
      tokens: SignInTokens = { accessToken: 'at-0', refreshToken: 'rt-0' },
    ) {
      const user = { userInfo: { ...USER_INFO, username }, groups: ['staff'], claims: { ...claims } }
      const set = { ...tokens, expiresIn: 7200, receivedAt: now() }
      return (await sessions.open({ tokens: set, user, provider: undefined })).ticket
    },
    /** When the token has become due. */
    async refresh(ticket: string) {
      const before = refreshes
      clock.now += 7000_000
      await sessions.getFresh(ticket)
      assert.equal(refreshes, before + 1)
    },
    role: async (ticket: string) => (await sessions.get(ticket))?.session.userRole,
  }
}

test('a user loses a role with the row that gave it, even if a claim row gives that role to others', async t => {
  const { signIn, use, role, refresh } = open(t, [BY_NAME, BY_CLAIM])
  const lisi = await signIn({ dept: { name: '财务部' } })
  const wangwu = await signIn({ dept: { name: '运维部' } }, 'wangwu')
  assert.deepEqual([await role(lisi), await role(wangwu)], ['ops', 'ops'])
  use([BY_CLAIM])
  assert.deepEqual([await role(lisi), await role(wangwu)], ['common', 'ops'])
  await refresh(lisi)
  assert.equal(await role(lisi), 'common')
})

test('a role row that is removed and added again restores the role, even after a token refresh in between', async t => {
  for (const row of [BY_NAME, BY_CLAIM, { role: 'ops', groups: ['staff'] }]) {
    const { signIn, use, role, refresh } = open(t, [row])
    const ticket = await signIn({ dept: { name: '运维部' } })
    assert.equal(await role(ticket), 'ops')
    use([])
    assert.equal(await role(ticket), 'common')
    await refresh(ticket)
    assert.equal(await role(ticket), 'common')
    use([row])
    assert.equal(await role(ticket), 'ops', JSON.stringify(row))
    await refresh(ticket)
    assert.equal(await role(ticket), 'ops', JSON.stringify(row))
  }
})

test('a row for a claim that no row named before applies to users who are already signed in', async t => {
  const { signIn, use, role, sessions } = open(t, [])
  const ticket = await signIn({ dept: { name: '运维部' }, level: 7 })
  use([{ role: 'seven', claim: { level: [7] } }])
  assert.equal(await role(ticket), 'seven')
  assert.equal((await sessions.get(ticket))?.who.role, 'seven')
  use([{ role: 'eight', claim: { level: [8] } }])
  assert.equal(await role(ticket), 'common')
})

test('claims are sealed in the store, and are not in the cache of opened sessions', async t => {
  const { signIn, sessions, store } = open(t, [BY_CLAIM])
  const ticket = await signIn({ dept: { name: '运维部' }, remark: 'CANARY-remark' })
  const loaded = sessions.getCached(ticket)
  assert.equal(loaded?.who.role, 'ops')
  assert.ok(!inspect(loaded, { depth: 9, showHidden: true }).includes('CANARY'))
  const stored = await store.read(recordKey(ticket))
  assert.ok(stored && !Buffer.from(stored.value).toString('latin1').includes('CANARY'))
})

test('claims that were tampered with or copied from another session give no role, and the session still works', async t => {
  const { signIn, sessions, store, role, use } = open(t, [BY_CLAIM])
  const lisi = await signIn({ dept: { name: '财务部' } })
  const wangwu = await signIn({ dept: { name: '运维部' } }, 'wangwu')
  const partsOf = async (ticket: string) => {
    const stored = await store.read(recordKey(ticket))
    const parts = stored && unpackRecord(stored.value)
    assert.ok(stored && parts?.claimsPart)
    return { stored, parts, claimsPart: parts.claimsPart }
  }
  const { claimsPart: foreign } = await partsOf(wangwu)
  const { claimsPart } = await partsOf(lisi)
  const flipped = Buffer.from(claimsPart)
  flipped[20] = (flipped[20] ?? 0) ^ 1
  for (const forged of [foreign, flipped, Buffer.of(), claimsPart.subarray(1)]) {
    const { stored, parts } = await partsOf(lisi)
    const value = packRecord({ ...parts, claimsPart: forged })
    await store.replace(stored.key, { ...stored, value }, stored.version)
    use([BY_CLAIM])
    assert.equal(await role(lisi), 'common')
  }
  assert.ok(await sessions.get(lisi))
})

test('of claims over 16 KB, those that role rows use are kept first, and the log names the rest', async t => {
  const { signIn, role, use, events, store } = open(t, [BY_CLAIM])
  const many = (name: string, bytes: number) => ({ [name]: 'x'.repeat(bytes) })
  const claims = {
    ...many('a', 9000),
    ...many('b', 9000),
    ...many('c', 100),
    dept: { name: '运维部', x: 'y'.repeat(9000) },
  }
  const ticket = await signIn(claims)
  assert.equal(await role(ticket), 'ops')
  assert.deepEqual(
    events.map(([event, fields]) => [event, (fields as { claims?: string[] }).claims]),
    [['claims_left_out', ['a', 'b']]],
  )
  use([{ role: 'c', claim: { c: ['x'.repeat(100)] } }])
  assert.equal(await role(ticket), 'c')
  assert.ok(((await store.read(recordKey(ticket)))?.value.length ?? 0) < 20_000)
  const huge = await signIn({ dept: { name: '运维部', x: 'y'.repeat(17_000) } })
  use([BY_CLAIM])
  assert.equal(await role(huge), 'common', 'what cannot be kept gives no role, not even for the first moment')
})

test('a claim that was not kept is not treated as absent: neither the row that depends on it nor later rows match', async t => {
  const blocked = Array.from({ length: 2500 }, (_, n) => `block-${n}`)
  const rows: [roles: RoleConfig[], expected: string][] = [
    [[{ role: 'ops', claim: { blocked: [null] } }], 'common'],
    [[{ role: 'ops', claim: { 'blocked.by': [null] } }], 'common'],
    [[{ role: 'ops', claim: { nothing: [null] } }], 'ops'],
    [[{ role: 'less', claim: { blocked: ['block-7'] } }, BY_NAME], 'common'],
    [[{ role: 'less', username: ['wangwu'], claim: { blocked: ['block-7'] } }, BY_NAME], 'ops'],
    [[BY_NAME, { role: 'less', claim: { blocked: ['block-7'] } }], 'ops'],
  ]
  for (const [roles, expected] of rows) {
    const { signIn, role, refresh, use } = open(t, roles)
    const ticket = await signIn({ blocked })
    assert.equal(await role(ticket), expected, JSON.stringify(roles))
    await refresh(ticket)
    use(roles)
    assert.equal(await role(ticket), expected, `${JSON.stringify(roles)} after a refresh`)
  }
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`name-${n}`, 'some text']))
  const { signIn, role, use, store } = open(t, [{ role: 'ops', claim: { nothing: [null] } }])
  const ticket = await signIn(many)
  assert.equal(await role(ticket), 'common', 'too many names to keep: any of them may be lost')
  use([{ role: 'ops', claim: { 'name-0': ['some text'] } }])
  assert.equal(await role(ticket), 'ops')
  assert.ok(((await store.read(recordKey(ticket)))?.value.length ?? 0) < 24_000)
})

test('a session without stored claims gets no role from a claim row, not even from a row for an absent claim', async t => {
  const { signIn, store, role, use } = open(t, [])
  const ticket = await signIn({ level: 7 })
  const stored = await store.read(recordKey(ticket))
  const parts = stored && unpackRecord(stored.value)
  assert.ok(stored && parts)
  const value = packRecord({ ...parts, claimsPart: Buffer.of() })
  await store.replace(stored.key, { ...stored, value }, stored.version)
  for (const values of [[null], [7]]) {
    use([{ role: 'ops', claim: { level: values } }])
    assert.equal(await role(ticket), 'common')
  }
  use([BY_NAME])
  assert.equal(await role(ticket), 'ops')
})

test('a token that was left out of the stored claims is not treated as an absent claim', async t => {
  const { signIn, role } = open(t, [{ role: 'ops', claim: { access_token: [null] } }])
  assert.equal(await role(await signIn({ access_token: 'at-0' })), 'common')
})

test('a role row without conditions matches no user', async t => {
  const { signIn, role } = open(t, [{ role: 'ops', claim: {} }, { role: 'ops' }])
  assert.equal(await role(await signIn({ level: 7 })), 'common')
})

test('tokens that the provider also returns as claims are not stored as claims', async t => {
  const { signIn, use, role } = open(t, [])
  const tokens = { accessToken: 'CANARY-at', refreshToken: 'CANARY-rt' }
  const ticket = await signIn({ access_token: 'CANARY-at', refreshToken: 'CANARY-rt', level: 7 }, 'lisi', tokens)
  for (const [claim, expected] of [
    [{ access_token: ['CANARY-at'] }, 'common'],
    [{ refreshToken: ['CANARY-rt'] }, 'common'],
    [{ level: [7] }, 'found'],
  ] as const) {
    use([
      { role: 'found', claim: Object.fromEntries(Object.entries(claim).map(([name, values]) => [name, [...values]])) },
    ])
    assert.equal(await role(ticket), expected)
  }
})

test('claims of the id_token stay when a refresh returns no id_token and their source is not stored', async t => {
  const { signIn, store, role, refreshUser, refresh } = open(t, [BY_CLAIM])
  const idToken = `e30.${Buffer.from(JSON.stringify({ sub: 's', dept: { name: '运维部' } })).toString('base64url')}.x`
  const claims = { sub: 's', dept: { name: '运维部' }, grade: 7 }
  const ticket = await signIn(claims, 'lisi', { accessToken: 'at-0', refreshToken: 'rt-0', idToken })
  const stored = await store.read(recordKey(ticket))
  assert.ok(stored)
  refreshUser(before => {
    assert.equal(before.exclusiveClaims, undefined)
    return mapRefreshedUser({ userinfo: { sub: 's', username: 'lisi' } }, PLAN, before)
  })
  await refresh(ticket)
  assert.equal(await role(ticket), 'ops')
})

test('roles that change during an identity refresh apply to its result, and later rows match the new claims', async t => {
  const { signIn, use, role, refreshUser, refresh } = open(t, [BY_CLAIM])
  const ticket = await signIn({ dept: { name: '财务部' } })
  refreshUser(before => {
    // By mistake, and mended later.
    use([])
    return { userInfo: before.userInfo, groups: before.groups, claims: { dept: { name: '运维部' }, level: 7 } }
  })
  await refresh(ticket)
  assert.equal(await role(ticket), 'common')
  use([BY_CLAIM])
  assert.equal(await role(ticket), 'ops')
  use([{ role: 'seven', claim: { level: [7] } }])
  assert.equal(await role(ticket), 'seven')
})

test('user data and failed requirements from a provider that was reconfigured during the call are ignored', async t => {
  const { signIn, sessions, role, refreshUser, refresh, events, replaceProvider } = open(t, [BY_CLAIM])
  const ticket = await signIn({ dept: { name: '财务部' } })
  refreshUser(before => {
    replaceProvider()
    return { userInfo: before.userInfo, groups: before.groups, claims: { dept: { name: '运维部' } } }
  })
  await refresh(ticket)
  assert.equal(await role(ticket), 'common')
  assert.ok(events.some(([event]) => event === 'identity_refresh_failed'))
  refreshUser(() => {
    replaceProvider()
    throw new RequirementError('dept', 'sub')
  })
  await refresh(ticket)
  assert.ok(await sessions.get(ticket), 'nobody is signed out by a requirement that is gone')
})

test('refreshed claims over 16 KB are sealed as far as they fit, the rest is logged once, and none is in the cache', async t => {
  const { signIn, sessions, store, role, refreshUser, refresh, events } = open(t, [BY_CLAIM])
  const ticket = await signIn({ dept: { name: '财务部' } })
  const large = Object.fromEntries(['a', 'b', 'c'].map(name => [name, `CANARY${'x'.repeat(9000)}`]))
  refreshUser(({ userInfo, groups }) => ({
    userInfo,
    groups,
    claims: { ...large, dept: { name: '运维部' }, access_token: 'at-1' },
  }))
  for (let round = 0; round < 2; round++) {
    await refresh(ticket)
    assert.equal(await role(ticket), 'ops')
  }
  assert.deepEqual(
    events
      .filter(([event]) => event === 'claims_left_out')
      .map(([, fields]) => (fields as { claims: string[] }).claims),
    [['b', 'c']],
    'told once',
  )
  const stored = await store.read(recordKey(ticket))
  const text = Buffer.from(stored?.value ?? []).toString('latin1')
  assert.ok(text.length < 20_000 && !text.includes('CANARY'))
  assert.ok(!inspect(sessions.getCached(ticket), { depth: 9, showHidden: true }).includes('CANARY'))
})

test('whether a claim is unknown is found by the names in its path, without a search of all claims', () => {
  const enumerate = () => assert.fail('all claims are searched')
  const claims = new Proxy({ dept: 1, 'a.b': 2, '': 3 }, { ownKeys: enumerate })
  for (const [path, isKnown] of [
    ...[
      ['dept', true],
      ['dept.name', true],
      ['a.b', true],
      ['a.b.c', true],
      ['.x', true],
    ],
    ...[
      ['a', false],
      ['a.c', false],
      ['department', false],
      ['x.dept', false],
      ['constructor', false],
    ],
  ] as const) {
    assert.equal(isUnknownClaim({ claims, unknownClaims: 'all' }, path), !isKnown, path)
    assert.equal(isUnknownClaim({ claims: {}, unknownClaims: ['dept', 'a.b', ''] }, path), isKnown, path)
  }
})
