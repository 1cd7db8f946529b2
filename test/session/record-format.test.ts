// The first byte of a value in the store is its format: a session in any other format counts as absent and stays as it is.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { readSettings } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { authenticationOf, openSession, withTokens } from '../../src/session/record.ts'
import { packRecord, seal, unpackRecord } from '../../src/session/sealing.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { recordKey, sealingKey } from '../../src/session/ticket.ts'
import { createAttempts } from '../../src/sign-in/attempts.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { START } from '../faults/doubles.ts'

const NEWER_FORMAT = 2

const USER_INFO = {
  sub: 'sub-zhangsan',
  ou_id: 'ou-1',
  nickname: '张三',
  phone_number: '86 13811111111',
  ou_name: '研发部',
  email: 'zhangsan@example.com',
  username: 'zhangsan',
}

async function open(t: TestContext) {
  const now = () => START
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const events: string[] = []
  const report = (event: string) => void events.push(event)
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('a client secret') })
  const keyring = createDataKeyring({ store, keys, now, report })
  const nobody = () => Promise.reject(new Error('nothing is due'))
  const providers = { get: () => ({ plan: { refreshLead: 'fixed' as const }, refresh: nobody, signOut: nobody }) }
  const settings = readSettings({})
  const sessions = createSessions({ store, providers, roles: DEFAULT_ROLES, keyring, settings, now, report })
  const tokens = { accessToken: 'at-1', refreshToken: 'rt-1', expiresIn: 7200, receivedAt: START }
  const { ticket } = await sessions.open({
    tokens,
    user: { userInfo: USER_INFO, groups: [], claims: {} },
    provider: undefined,
  })
  const key = recordKey(ticket)
  /** Puts other bytes in the place of the session's. */
  async function overwrite(change: (value: Uint8Array) => Uint8Array): Promise<void> {
    const stored = await store.read(key)
    assert.ok(stored)
    await store.replace(key, { ...stored, value: change(stored.value) }, stored.version)
  }
  return { store, events, sessions, ticket, key, overwrite, now }
}

test('a session in a newer format is ignored, reported once, and stays in the store until it is signed out', async t => {
  const { sessions, store, events, ticket, key, overwrite } = await open(t)
  await overwrite(value => Buffer.concat([Buffer.of(NEWER_FORMAT), value]))
  for (let n = 0; n < 3; n++) {
    assert.equal(await sessions.get(ticket), undefined)
    assert.equal(await sessions.getFresh(ticket), undefined)
  }
  assert.deepEqual(events, ['newer_format'])
  const { sessions: listed } = await sessions.list({ username: 'zhangsan', limit: 10 })
  assert.deepEqual(
    listed.map(({ summary }) => summary),
    [undefined],
  )
  assert.equal((await store.read(key))?.value[0], NEWER_FORMAT)
  await sessions.close(ticket)
  assert.equal(await store.read(key), undefined, 'a sign-out counts for every version')
})

test('a record that its ticket decrypts but that does not have the form of a session is reported as unreadable', async t => {
  const { sessions, events, ticket, key, overwrite } = await open(t)
  const { session } = (await sessions.get(ticket)) ?? assert.fail()
  const { accessToken: _, ...tokenless } = session
  const odd = [
    null,
    'text',
    session,
    [START, session],
    { signedInAt: START },
    { signedInAt: START, session: tokenless },
    { signedInAt: START, session: { ...session, tokenExpiresIn: '7200' } },
    { signedInAt: START, session: { ...session, refreshToken: null } },
    { signedInAt: START, session: { ...session, isAuthenticated: false } },
    { signedInAt: START, session: { ...session, userInfo: { ...USER_INFO, level: 7 } } },
    { signedInAt: START, session: { ...session, groups: ['audit', 7] } },
    { signedInAt: START, session: { ...session, device: { challenge: 'c', id: 'half a device' } } },
    { signedInAt: START, session: { ...session, unknownField: 'x' } },
    { signedInAt: START, session, unknownField: 'x' },
  ]
  for (const record of odd) {
    const sealedPart = seal(sealingKey(ticket), Buffer.from(JSON.stringify(record)), key)
    await overwrite(() => packRecord({ seenAt: START, summaryPart: Buffer.of(), claimsPart: Buffer.of(), sealedPart }))
    assert.equal(await sessions.get(ticket), undefined, JSON.stringify(record))
  }
  assert.deepEqual(events, Array(odd.length).fill('record_unreadable'))
})

test('authentication details are kept beside mapped fields and data, and without them the time is that of the sign-in here', async t => {
  const { sessions, ticket } = await open(t)
  assert.deepEqual(authenticationOf((await sessions.get(ticket)) ?? assert.fail()), { time: START })
  const tokens = {
    accessToken: 'at',
    expiresIn: 7200,
    receivedAt: START,
    authentication: { time: START - 5000, acr: 'gold', amr: ['mfa'], failed: 'x', promptedAt: START },
  }
  const user = { userInfo: { ...USER_INFO, employee_no: '7' }, groups: [], claims: {} }
  const opened = await sessions.open({ tokens, user, provider: undefined }, async () => ({ cart: 1 }))
  sessions.use({ providers: { get: () => undefined }, roles: DEFAULT_ROLES })
  const loaded = (await sessions.get(opened.ticket)) ?? assert.fail('it was just opened')
  const { authentication, data, userInfo } = loaded.session
  assert.deepEqual([authentication, data, userInfo], [tokens.authentication, { cart: 1 }, user.userInfo])
  assert.deepEqual(authenticationOf(loaded), tokens.authentication)
})

test('broken bytes and bytes in an unknown format are not a session and are reported as unreadable', async t => {
  const { sessions, events, ticket, overwrite } = await open(t)
  const values = [
    '\u0000',
    '\u0001',
    '\u0000\u0000\u0000\u0000',
    '\u0001\u0000\u0000',
    '\u0000\u00ff\u00ff\u00ff\u00ffx',
    `\u0001${'\u0000'.repeat(12)}`,
    `\u0001${'\u00ff'.repeat(30)}`,
    '\u0001'.repeat(200),
  ]
  for (const value of values) {
    await overwrite(() => Buffer.from(value, 'latin1'))
    assert.equal(await sessions.get(ticket), undefined, JSON.stringify(value))
    assert.equal((await sessions.list({ limit: 10 })).sessions.length, 1)
  }
  assert.deepEqual(events, Array(values.length).fill('record_unreadable'))
})

test('a sign-in attempt stored without its format byte is treated as absent, even though its key decrypts the rest', async t => {
  const { store, now } = await open(t)
  const attempts = createAttempts({ settings: { ATTEMPT_MINUTES: 30 }, store, now })
  const plan = { id: 'default', kind: 'oauth2', state: 'plain', stateCheck: 'bound', pkce: true } as const
  const { authorization: sent, browser } = await attempts.start(plan, undefined, { returnPath: '/reports?year=2026' })
  assert.equal((await attempts.find(browser, sent.state))?.returnPath, '/reports?year=2026')
  const create = store.create.bind(store)
  const unmarked = createAttempts({
    settings: { ATTEMPT_MINUTES: 30 },
    store: { ...store, create: (key, entry) => create(key, { ...entry, value: entry.value.subarray(1) }) },
    now,
  })
  const second = await unmarked.start(plan, undefined, { returnPath: '/reports' })
  assert.equal(await attempts.find(second.browser, second.authorization.state), undefined)
})

test('the DPoP key of a session’s tokens is stored sealed, read back and dropped with those tokens', async t => {
  const { sessions, store, key } = await open(t)
  const key1 = 'x-CANARY.y.d'
  const tokens = { accessToken: 'at-2', refreshToken: 'rt-2', expiresIn: 7200, receivedAt: START, dpopKey: key1 }
  const user = { userInfo: USER_INFO, groups: [], claims: {} }
  const { ticket, loaded } = await sessions.open({ tokens, user, provider: undefined })
  assert.deepEqual([loaded.session.accessToken, loaded.session.dpopKey], ['at-2', key1])
  const stored = (await store.read(recordKey(ticket))) ?? assert.fail()
  assert.ok(!Buffer.from(stored.value).includes('CANARY'), 'it is sealed')
  const parts = unpackRecord(stored.value) ?? assert.fail()
  const opened = openSession(parts, ticket, recordKey(ticket))
  assert.deepEqual([opened?.session.accessToken, opened?.session.dpopKey], ['at-2', key1])
  const refreshed = withTokens(loaded.session, { accessToken: 'at-3', expiresIn: 60, receivedAt: START })
  assert.equal(refreshed.dpopKey, undefined, 'the key goes with the token that it is for')
  // Another ticket does not open it: a record that is moved is not a session.
  assert.equal(openSession(parts, ticket, key), undefined)
})
