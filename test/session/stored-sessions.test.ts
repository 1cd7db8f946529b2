// A session in the store: written, opened by its ticket, noted as seen, and absent if its bytes were changed.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { z } from 'zod'
import { readSettings } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { identityOf } from '../../src/session/fields.ts'
import { createLastSeen } from '../../src/session/last-seen.ts'
import { createSessionListing } from '../../src/session/listing.ts'
import { openSession, type Session } from '../../src/session/record.ts'
import { packRecord, seal, unpackRecord } from '../../src/session/sealing.ts'
import { applyChange, createStoredSessions } from '../../src/session/stored-sessions.ts'
import { newTicket, recordKey, sealingKey } from '../../src/session/ticket.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { START } from '../faults/doubles.ts'
import { createRandom, type Random } from '../security/random.ts'

const ORIGIN = { address: '192.0.2.7', userAgent: 'Mozilla/5.0 (X11)' }
const TOKENS = { accessToken: 'at-2', refreshToken: 'rt-2', tokenIssuedAt: START, tokenExpiresIn: 7200 }
const LISI = {
  sub: 'sub-lisi',
  ou_id: 'ou-2',
  nickname: '李四',
  phone_number: '86 13822222222',
  ou_name: '财务部',
  email: 'lisi@example.com',
  username: 'lisi',
}
const LEAST: Session = {
  isAuthenticated: true,
  accessToken: 'at-2',
  tokenIssuedAt: START,
  tokenExpiresIn: 7200,
  userInfo: LISI,
  userRole: 'common',
}
const MOST: Session = {
  ...LEAST,
  ...TOKENS,
  refreshEndsAt: START + 86_400_000,
  userInfo: { ...LISI, ...{ level: '7', __proto__x: '' } },
  userRole: 'auditor',
  provider: 'staff',
  providerSession: { issuer: 'https://idp.example.com', sid: 's-1' },
  idToken: 'a.b.c',
  dpopKey: 'x.y.d',
  groups: ['audit', '主管'],
  authentication: { time: START, acr: 'gold', amr: ['mfa'], promptedAt: START, failed: 'x' },
  device: {
    ...{ id: 'device-1', x: 'x', y: 'y', challenge: 'c-2', previousChallenge: 'c-1', lastNonce: 'n-1', isSeen: true },
    cookie: { value: 'cookie-2', until: START },
    previousCookie: { value: 'cookie-1', until: START },
  },
}
/** With what an application keeps. */
const WITH_DATA: Session = { ...MOST, data: { tenant: 7, tags: ['甲', null] } }

function open(t: TestContext) {
  const clock = { now: START }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const events: string[] = []
  const report = (event: string) => void events.push(event)
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('a client secret') })
  const keyring = createDataKeyring({ store, keys, now, report })
  const identify = (session: Session) => ({ session, who: identityOf(session, (_, name) => name) })
  const options = { store, keyring, settings: readSettings({}), identify, now, report }
  return { clock, store, events, keyring, options, sessions: createStoredSessions(options) }
}

for (const [name, session] of Object.entries({ least: LEAST, most: MOST }))
  test(`a session with the ${name} data possible is read back as it was written`, async t => {
    const { sessions } = open(t)
    const { ticket, loaded } = await sessions.create(session, ORIGIN)
    assert.deepEqual(loaded.session, session)
    const { signedInAt, seenAt } = loaded
    assert.deepEqual([signedInAt, seenAt], [START, START])
    assert.deepEqual((await sessions.take(ticket))?.session, session)
  })

test('opening a session needs only its ticket, not the data keys of its summary', async t => {
  const { sessions, options } = open(t)
  const { ticket } = await sessions.create(MOST, ORIGIN)
  const noKeys = () => assert.fail('the data keys were asked for')
  const strict = createStoredSessions({ ...options, keyring: { current: noKeys, latest: noKeys } })
  assert.deepEqual((await strict.get(ticket))?.session, MOST)
})

test('loadSync returns the same session as get, only for its own ticket, and caches it', async t => {
  const { sessions, options } = open(t)
  const { ticket } = await sessions.create(MOST, ORIGIN)
  const another = createStoredSessions(options)
  assert.deepEqual(another.loadSync(ticket), await sessions.get(ticket))
  assert.ok(another.getCached(ticket), 'it is at hand from then on')
  for (const wrong of [newTicket(), '', `${ticket}x`]) assert.equal(another.loadSync(wrong), undefined)
  await sessions.take(ticket)
  assert.equal(another.loadSync(ticket), undefined)
})

test('loadSync returns nothing for an unreadable record and does not report it', async t => {
  const { sessions, store, events } = open(t)
  const ticket = newTicket()
  await store.create(recordKey(ticket), { value: Buffer.of(2, 1, 2, 3), expiresAt: START + 1, labels: [] })
  assert.equal(sessions.loadSync(ticket), undefined)
  assert.deepEqual(events, [])
})

test('a session ends after the current SESSION_MAX_HOURS, even if its record was stored for longer', async t => {
  const { sessions, options, clock } = open(t)
  const { ticket } = await sessions.create({ ...LEAST, tokenExpiresIn: 86_400 })
  const shorter = createStoredSessions({ ...options, settings: readSettings({ SESSION_MAX_HOURS: '1' }) })
  clock.now += 3_599_000
  assert.ok(await shorter.load(ticket))
  clock.now += 1000
  assert.equal(await shorter.get(ticket), undefined)
  assert.equal(await shorter.load(ticket), undefined)
  assert.equal(shorter.loadSync(ticket), undefined)
  assert.ok(await sessions.get(ticket))
})

test('a refresh keeps the address, user agent and sign-in time of a session', async t => {
  const { sessions, store, keyring, clock, events } = open(t)
  const { ticket, loaded } = await sessions.create(MOST, ORIGIN)
  const { getListed } = createSessionListing({ store, keyring })
  clock.now += 60_000
  const tokens = { accessToken: 'at-3', expiresIn: 3600, receivedAt: clock.now }
  const saved = await sessions.save(ticket, loaded, { tokens })
  assert.equal(saved?.session.accessToken, 'at-3')
  assert.deepEqual([saved?.signedInAt, saved?.seenAt], [START, clock.now])
  const { summary } = (await getListed(recordKey(ticket))) ?? {}
  assert.deepEqual([summary?.address, summary?.userAgent], [ORIGIN.address, ORIGIN.userAgent])
  assert.deepEqual(events, [])
})

test('a change of tokens or user applies to the latest session and leaves its other fields unchanged', () => {
  const latest = { ...MOST, data: { tenant: 7 } }
  const tokens = { accessToken: 'at-3', expiresIn: 60, receivedAt: START + 1 }
  const { accessToken, refreshToken, tokenIssuedAt, data } = applyChange({ tokens }, MOST, latest) ?? assert.fail()
  assert.deepEqual([accessToken, refreshToken, tokenIssuedAt, data], ['at-3', 'rt-2', START + 1, { tenant: 7 }])
  const user = { userInfo: { ...LISI, nickname: '四' }, groups: [], claims: { claims: {}, unknownClaims: [] } }
  const renamed = applyChange({ user }, MOST, latest) ?? assert.fail()
  assert.deepEqual([renamed.userInfo, renamed.groups, renamed.data], [user.userInfo, undefined, { tenant: 7 }])
})

test('a change that is based on outdated tokens does not apply, so the tokens of the faster process stay', () => {
  const latest = { ...MOST, accessToken: 'at-3' }
  const tokens = { accessToken: 'at-late', expiresIn: 60, receivedAt: START }
  const user = { userInfo: LISI, groups: [], claims: { claims: {}, unknownClaims: [] } }
  for (const change of [{ tokens }, { user }, { until: START }])
    assert.equal(applyChange(change, MOST, latest), undefined)
})

test('a device change applies to the latest device, even with other tokens, and not at all without a device', () => {
  const latest = { ...LEAST, accessToken: 'at-3', device: { challenge: 'c-1' } }
  const device = (former: Session['device']) => former && { challenge: `after ${former.challenge}` }
  assert.deepEqual(applyChange({ device }, LEAST, latest), { ...latest, device: { challenge: 'after c-1' } })
  assert.equal(applyChange({ device }, latest, LEAST), undefined)
})

test('a refresh reseals the summary only for a changed role or user, and keeps the identity headers of an unchanged user', async t => {
  const { sessions, store, keyring, clock, options } = open(t)
  const { ticket, loaded } = await sessions.create(MOST, ORIGIN)
  const { getListed } = createSessionListing({ store, keyring })
  const sealedSummary = async () => {
    const stored = (await store.read(loaded.key)) ?? assert.fail()
    return Buffer.from(unpackRecord(stored.value)?.summaryPart ?? []).toString('base64')
  }
  const summary = async () => (await getListed(loaded.key))?.summary
  const tokens = (accessToken: string) => ({ tokens: { accessToken, expiresIn: 3600, receivedAt: clock.now } })
  const before = await sealedSummary()
  loaded.identityHeaders = [{ audience: 'a', names: new Set(), pairs: [], sent: [], until: clock.now }]
  clock.now += 60_000
  const refreshed = (await sessions.save(ticket, loaded, tokens('at-3'))) ?? assert.fail()
  assert.equal(await sealedSummary(), before)
  assert.equal((await summary())?.seenAt, clock.now)
  assert.equal(refreshed.identityHeaders, loaded.identityHeaders)

  const promoting = createStoredSessions({
    ...options,
    identify: session => options.identify({ ...session, userRole: 'chief' }),
  })
  const chief = (await promoting.load(ticket)) ?? assert.fail()
  chief.identityHeaders = refreshed.identityHeaders
  const promoted = (await promoting.save(ticket, chief, tokens('at-4'))) ?? assert.fail()
  assert.deepEqual([(await summary())?.userRole, (await summary())?.address], ['chief', ORIGIN.address])
  const claims = { claims: {}, unknownClaims: [] }
  const user = { userInfo: { ...MOST.userInfo, nickname: '四' }, groups: [], claims }
  const renamed = await promoting.save(ticket, promoted, { user })
  assert.deepEqual([(await summary())?.nickname, renamed?.identityHeaders], ['四', undefined])
})

test('a session loaded while the configuration changes is not cached with its former role', async t => {
  const { sessions, options } = open(t)
  const { ticket } = await sessions.create(LEAST)
  let role = 'former'
  const changing = createStoredSessions({
    ...options,
    identify(session) {
      const { who } = options.identify({ ...session, userRole: role })
      // Before whoever loads it goes on.
      queueMicrotask(() => {
        role = 'present'
        changing.forget()
      })
      return { session, who }
    },
  })
  assert.equal((await changing.get(ticket))?.who.role, 'former')
  assert.equal((await changing.get(ticket))?.who.role, 'present')
})

test('the last-seen time of a session is saved without its ticket, and its address and sign-in time stay', async t => {
  const { sessions, store, keyring, clock, options } = open(t)
  const { ticket, loaded } = await sessions.create(MOST, ORIGIN)
  clock.now += 6 * 60_000
  const replaced = Promise.withResolvers<void>()
  const watched = {
    ...store,
    async replace(...args: Parameters<typeof store.replace>) {
      const done = await store.replace(...args)
      replaced.resolve()
      return done
    },
  }
  createLastSeen({ ...options, store: watched })(loaded)
  await replaced.promise
  const again = await sessions.get(ticket)
  assert.deepEqual([again?.signedInAt, again?.seenAt], [START, clock.now])
  const listed = await createSessionListing({ store, keyring }).getListed(loaded.key)
  assert.deepEqual(
    [listed?.summary?.seenAt, listed?.summary?.address, listed?.summary?.signedInAt],
    [clock.now, ORIGIN.address, START],
  )
})

test('1,000 due last-seen updates are saved at most 350 per second, the rest at later visits, and each once', async t => {
  const { sessions, clock, options } = open(t)
  const { loaded } = await sessions.create(LEAST)
  const asked: string[] = []
  const read = async (key: string) => void asked.push(key)
  const noteVisit = createLastSeen({ ...options, store: { ...options.store, read } })
  clock.now += 6 * 60_000
  const visits = Array.from({ length: 1000 }, (_, n) => ({ ...loaded, key: `session-${n}` }))
  const seconds = [1, 2, 3, 4].map(() => {
    clock.now += 1000
    const before = asked.length
    for (const visit of visits) noteVisit(visit)
    return asked.length - before
  })
  assert.deepEqual(seconds, [350, 350, 300, 0])
  assert.equal(new Set(asked).size, visits.length, 'each of them once')
})

test('a store that fails to save last-seen times is reported once per outage, not for each of 50 visits', async t => {
  const { sessions, clock, options, events, store } = open(t)
  const { loaded } = await sessions.create(LEAST)
  clock.now += 6 * 60_000
  let isFull = true
  const read = async () => {
    if (isFull) throw new Error('full')
    return store.read(loaded.key)
  }
  const noteVisit = createLastSeen({ ...options, store: { ...store, read } })
  const manyCome = async (name: string) => {
    for (let n = 0; n < 50; n++) noteVisit({ ...loaded, key: `${name}-${n}` })
    await new Promise(setImmediate)
  }
  await manyCome('first')
  assert.deepEqual(events, ['last_seen_not_saved'])
  isFull = false
  await manyCome('second')
  isFull = true
  await manyCome('third')
  assert.deepEqual(events, ['last_seen_not_saved', 'last_seen_not_saved'])
})

test('a mangled record that its ticket decrypts is either a complete session or none, and never an error', async t => {
  const { sessions, store } = open(t)
  const { ticket, loaded } = await sessions.create(WITH_DATA, ORIGIN)
  const stored = await store.read(loaded.key)
  const parts = stored && unpackRecord(stored.value)
  assert.ok(parts)
  const place = recordKey(ticket)
  const openPlain = (plain: Buffer) =>
    openSession({ ...parts, sealedPart: seal(sealingKey(ticket), plain, place) }, ticket, place)
  const record = { signedInAt: START, session: WITH_DATA }
  assert.deepEqual(openPlain(Buffer.from(JSON.stringify(record)))?.session, WITH_DATA)
  const random = createRandom(20261116)
  let opened = 0
  for (let n = 0; n < 3000; n++) {
    const odd = random.chance(0.7) ? Buffer.from(JSON.stringify(mangle(record, random))) : scramble(record, random)
    const found = openPlain(odd)
    if (!found) continue
    opened++
    assertWhole(found.session, odd.toString())
  }
  assert.ok(opened > 100, 'some of it is still a session')
})

test('a record with any byte of its sealed part changed, or cut or replaced, is not a session, and no other change alters the session', async t => {
  const { sessions, store } = open(t)
  const { ticket, loaded } = await sessions.create(LEAST, ORIGIN)
  const before = await store.read(loaded.key)
  const parts = before && unpackRecord(before.value)
  assert.ok(parts)
  const random = createRandom(7)
  const sealedAt = before.value.length - parts.sealedPart.length
  const loadWith = async (value: Buffer) => {
    const stored = await store.read(loaded.key)
    assert.ok(stored)
    await store.replace(loaded.key, { ...stored, value }, stored.version)
    return sessions.load(ticket)
  }
  for (let at = 0; at < before.value.length; at++) {
    const value: Buffer = Buffer.from(before.value)
    value[at] = (value[at] ?? 0) ^ (1 << random.below(8))
    const found = await loadWith(value)
    if (found && at < sealedAt) assert.deepEqual(found.session, LEAST, `byte ${at}`)
    else assert.equal(found, undefined, `byte ${at}`)
    assert.equal(await loadWith(value.subarray(0, at)), undefined, `cut at ${at}`)
  }
  const stranger = newTicket()
  const forged = packRecord({ ...parts, sealedPart: seal(sealingKey(stranger), Buffer.from('[]'), loaded.key) })
  const stored = await store.read(loaded.key)
  await store.replace(loaded.key, { ...before, value: forged }, stored?.version ?? 0)
  assert.equal(await sessions.load(ticket), undefined)
})

const ODD = [null, true, 0, -1.5, '', '__proto__', 'constructor', [], ['x', 7], [null], {}, { length: 3 }] as const

/** Removes or replaces fields of any depth, or adds one. */
function mangle(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random.chance(0.05)) return random.pick(ODD)
  const entries = Object.entries(value)
  const at = random.below(entries.length + 1)
  const [name, former] = entries[at] ?? [random.pick(['x', 'constructor', 'toString']), undefined]
  const others = entries.filter((_, n) => n !== at)
  const mangled = random.chance(0.2) ? others : [...others, [name, mangle(former, random)] as const]
  return Array.isArray(value) ? mangled.map(([, each]) => each) : Object.fromEntries(mangled)
}

function scramble(record: unknown, random: Random): Buffer {
  const bytes = Buffer.from(JSON.stringify(record))
  for (let n = random.below(4); n >= 0; n--) bytes[random.below(bytes.length)] = random.below(256)
  return bytes.subarray(0, random.chance(0.3) ? random.below(bytes.length) : bytes.length)
}

const text = z.string()
const cookie = z.strictObject({ value: text, until: z.number() })
const boundDevice = z.strictObject({
  ...{ id: text, x: text, y: text, challenge: text, cookie, isSeen: z.boolean() },
  previousChallenge: text.exactOptional(),
  lastNonce: text.exactOptional(),
  previousCookie: cookie.exactOptional(),
})
const wholeSession = z.strictObject({
  isAuthenticated: z.literal(true),
  accessToken: text,
  refreshToken: text.exactOptional(),
  tokenIssuedAt: z.number(),
  tokenExpiresIn: z.number(),
  userInfo: z
    .object({
      sub: text,
      ou_id: text,
      nickname: text,
      phone_number: text,
      ou_name: text,
      email: text,
      username: text,
    })
    .catchall(text),
  userRole: text,
  provider: text.exactOptional(),
  providerSession: z.strictObject({ issuer: text, sid: text }).exactOptional(),
  idToken: text.exactOptional(),
  refreshEndsAt: z.number().exactOptional(),
  dpopKey: text.exactOptional(),
  groups: z.array(text).exactOptional(),
  authentication: z
    .strictObject({ time: z.number(), acr: text, amr: z.array(text), promptedAt: z.number(), failed: text })
    .partial()
    .exactOptional(),
  device: z.union([z.strictObject({ challenge: text }), boundDevice]).exactOptional(),
  data: z.record(text, z.unknown()).exactOptional(),
})

function assertWhole(session: Session, from: string): void {
  assert.ok(wholeSession.safeParse(session).success, from)
  assert.equal(Object.getPrototypeOf(session.userInfo), Object.prototype, from)
}
