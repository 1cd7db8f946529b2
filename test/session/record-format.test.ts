// What is in a store says which format it has. What was written before that can still be read, and what a newer version
// wrote is left alone.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { type TestContext } from 'node:test'
import { exportJWK } from 'jose'
import { z } from 'zod'
import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { readSettings } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { createAttempts } from '../../src/session/attempts.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { packRecord, seal } from '../../src/session/sealing.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { createSigningKeys } from '../../src/session/signing-keys.ts'
import { recordKey, sealingKey } from '../../src/session/ticket.ts'
import { createMemoryStore } from '../../src/stores/memory-store.ts'

/** Written by the version before formats had a number. */
const former = z
  .object({
    clientSecret: z.string(),
    writtenAt: z.number(),
    tickets: z.object({ zhangsan: z.string(), admin: z.string() }),
    attempt: z.object({ state: z.string(), browser: z.string() }),
    signingKey: z.object({ x: z.string(), y: z.string() }),
    entries: z.record(z.string(), z.object({ value: z.base64(), expiresAt: z.number(), labels: z.array(z.string()) })),
  })
  .parse(JSON.parse(readFileSync(new URL('first-format.json', import.meta.url), 'utf8')))

async function openFormer(t: TestContext, secret: string | undefined = undefined) {
  const clock = { now: former.writtenAt }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  for (const [key, { value, ...rest }] of Object.entries(former.entries))
    await store.create(key, { ...rest, value: Buffer.from(value, 'base64') })
  const events: string[] = []
  const report = (event: string) => void events.push(event)
  const settings = readSettings({ PKCE: 'S256' })
  const keys = deriveKeys({
    SECRET: secret === undefined ? undefined : [new Secret(secret)],
    CLIENT_SECRET: new Secret(former.clientSecret),
  })
  const keyring = createDataKeyring({ store, keys, now, report })
  const nobody = () => Promise.reject(new Error('nothing is due'))
  const providers = { get: () => ({ plan: { refreshLead: 'fixed' as const }, refresh: nobody, signOut: nobody }) }
  const sessions = createSessions({ store, providers, roles: DEFAULT_ROLES, keyring, settings, now, report })
  return { clock, now, store, events, settings, keys, sessions }
}

for (const secret of [undefined, 'a secret of our own that is long enough'])
  test(`sessions of the former format can be read, listed and ended ${secret ? 'after SECRET was set' : 'as before'}`, async t => {
    const { sessions, events } = await openFormer(t, secret)
    const loaded = await sessions.get(former.tickets.zhangsan)
    assert.deepEqual(loaded?.session, {
      isAuthenticated: true,
      accessToken: 'at-1',
      refreshToken: 'rt-1',
      tokenIssuedAt: former.writtenAt,
      tokenExpiresIn: 7200,
      userInfo: {
        sub: 'sub-zhangsan',
        ou_id: 'ou-1',
        nickname: '张三',
        phone_number: '86 13811111111',
        ou_name: '研发部',
        email: 'zhangsan@example.com',
        username: 'zhangsan',
      },
      userRole: 'common',
    })
    assert.equal((await sessions.get(former.tickets.admin))?.session.userRole, 'developer')
    const listed = await sessions.list({ username: 'zhangsan', limit: 10 })
    assert.deepEqual(
      listed.sessions.map(({ publicPart }) => publicPart?.nickname),
      ['张三'],
    )
    assert.equal((await sessions.endAllOf({ sub: 'sub-zhangsan' })).count, 1)
    assert.equal(await sessions.get(former.tickets.zhangsan), undefined)
    assert.ok(await sessions.get(former.tickets.admin))
    assert.deepEqual(events, [])
  })

test('a session of the former format is written in the present one when it is seen, and stays the same', async t => {
  const { sessions, store, clock } = await openFormer(t)
  const key = recordKey(former.tickets.zhangsan)
  const before = (await sessions.get(former.tickets.zhangsan))?.session
  clock.now += 6 * 60_000
  assert.ok(sessions.getCached(former.tickets.zhangsan))
  const { promise: written, resolve } = Promise.withResolvers<void>()
  const look = setInterval(async () => (await store.read(key))?.value[0] === 1 && resolve(), 5)
  await written
  clearInterval(look)
  const after = await sessions.get(former.tickets.zhangsan)
  assert.deepEqual(after?.session, before)
  assert.deepEqual([after?.signedInAt, after?.seenAt], [former.writtenAt, clock.now])
})

test('an attempt of the former format can be taken back, once', async t => {
  const { store, now } = await openFormer(t)
  const attempts = createAttempts({ store, now })
  const { browser, state } = former.attempt
  const attempt = await attempts.take(browser, state)
  assert.equal(attempt?.returnPath, '/reports?year=2026')
  assert.match(attempt?.verifier ?? '', /^[\w-]{43}$/)
  assert.equal(await attempts.take(browser, state), undefined)
})

test('a signing key of the former format still signs', async t => {
  const { store, keys, now } = await openFormer(t)
  const { key } = await createSigningKeys(store, keys.signing, now).current()
  const { x, y } = await exportJWK(key)
  assert.deepEqual({ x, y }, { x: former.signingKey.x, y: former.signingKey.y })
})

test('a session in a newer format is no session, is said once, and is left alone until it is signed out', async t => {
  const { sessions, store, events } = await openFormer(t)
  const ticket = former.tickets.zhangsan
  const key = recordKey(ticket)
  const stored = await store.read(key)
  assert.ok(stored)
  await store.replace(key, { ...stored, value: Buffer.concat([Buffer.of(4), stored.value]) }, stored.version)
  for (let n = 0; n < 3; n++) {
    assert.equal(await sessions.get(ticket), undefined)
    assert.equal(await sessions.getFresh(ticket), undefined)
  }
  assert.deepEqual(events, ['newer_format'])
  const { sessions: listed } = await sessions.list({ username: 'zhangsan', limit: 10 })
  assert.deepEqual(
    listed.map(({ publicPart }) => publicPart),
    [undefined],
  )
  assert.equal((await store.read(key))?.value[0], 4)
  await sessions.close(ticket)
  assert.equal(await store.read(key), undefined, 'whoever signs out is signed out for every version')
})

test('a record that its ticket opens and no schema knows is no session', async t => {
  const { sessions, store, events } = await openFormer(t)
  const ticket = former.tickets.zhangsan
  const key = recordKey(ticket)
  const session = (await sessions.get(ticket))?.session
  const odd = [
    { ...session, userRole: 7 },
    { ...session, userInfo: { username: 'admin' } },
    { ...session, tokenIssuedAt: '0' },
    { ...session, isAuthenticated: false },
    { ...session, refreshToken: null },
    [session],
    null,
  ]
  for (const record of odd) {
    const stored = await store.read(key)
    assert.ok(stored)
    const sealedPart = seal(sealingKey(ticket), Buffer.from(JSON.stringify(record)), key)
    await store.replace(key, { ...stored, value: packRecord({ publicPart: Buffer.of(), sealedPart }) }, stored.version)
    assert.equal(await sessions.get(ticket), undefined, JSON.stringify(record))
  }
  assert.deepEqual(events, Array(odd.length).fill('record_unreadable'))
})

test('bytes that no format knows are no session, whatever they are', async t => {
  const { sessions, store, events } = await openFormer(t)
  const ticket = former.tickets.zhangsan
  const key = recordKey(ticket)
  const values = [
    '',
    '\u0000',
    '\u0001',
    '\u0000\u0000\u0000\u0000',
    '\u0001\u0000\u0000',
    '\u0000\u00ff\u00ff\u00ff\u00ffx',
    '\u0001'.repeat(200),
  ]
  for (const value of values) {
    const stored = await store.read(key)
    assert.ok(stored)
    await store.replace(key, { ...stored, value: Buffer.from(value, 'latin1') }, stored.version)
    assert.equal(await sessions.get(ticket), undefined, JSON.stringify(value))
    assert.equal((await sessions.list({ limit: 10 })).sessions.length, 2)
  }
  assert.deepEqual(events, Array(values.length).fill('record_unreadable'))
})
