// Tokens for applications: one call for all processes, sealed in the store.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test, { type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MenshenError } from '../../src/index.ts'
import { UnsentRequestError } from '../../src/provider/fetch.ts'
import type { LoadedSession } from '../../src/session/cache.ts'
import { newTicket, recordKey } from '../../src/session/ticket.ts'
import { openStore } from '../../src/stores/open.ts'
import { exchangeTarget } from '../../src/token-exchange/exchange.ts'
import { createExchangedTokens, TokenExchangeError } from '../../src/token-exchange/exchanged-tokens.ts'

const ONE = exchangeTarget({ audience: 'one' })
const SETTINGS = { PROVIDER_TIMEOUT_MS: 1000, SESSION_MAX_HOURS: 12 }

/** Instances with one store and one provider, whose calls wait until they are answered. */
async function setUpInstances(t: TestContext) {
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const now = () => clock.now
  const store = await openStore('memory:', now, () => {})
  t.after(() => store.close())
  const calls: { readonly accessToken: string; answer(token: string): void; fail(error?: Error): void }[] = []
  const called = Promise.withResolvers<void>()
  const revoked: string[] = []
  const provider = {
    async revoke(tokens: readonly string[]) {
      await nextTurn()
      revoked.push(...tokens)
    },
    requestGrant: (_what: string, { subject_token: accessToken = '' }: Readonly<Record<string, string>>) =>
      new Promise<object>((resolve, reject) => {
        const answer = (token: string) => resolve({ access_token: token, expires_in: 600 })
        const fail = (error: Error = new MenshenError('provider_answer', 'no')) => reject(error)
        calls.push({ accessToken, answer, fail })
        called.resolve()
      }),
  }
  const open = () =>
    createExchangedTokens({ store, providers: { get: () => provider }, settings: SETTINGS, now, report: () => {} })
  async function begin(): Promise<string> {
    const ticket = newTicket()
    const record = { value: Buffer.from('session'), expiresAt: clock.now + 3_600_000, labels: [] }
    await store.create(recordKey(ticket), record)
    return ticket
  }

  return { clock, store, calls, revoked, called: called.promise, open, begin }
}

function sessionOf(ticket: string, accessToken: string, signedInAt: number, sub = 's'): LoadedSession {
  const session = { accessToken, userInfo: { sub, username: 'u' }, userRole: 'common' }
  return { key: recordKey(ticket), version: 1, signedInAt, session } as unknown as LoadedSession
}

test('three instances with one store make one call for a session and a target', async t => {
  const { clock, calls, called, open, begin } = await setUpInstances(t)
  const ticket = await begin()
  const load = () => sessionOf(ticket, 'at-1', clock.now)
  const instances = [open(), open(), open()]
  const asked = instances.map(tokens => tokens.get(ticket, load(), ONE))
  await called
  calls[0]?.answer('xt-1')
  assert.deepEqual(await Promise.all(asked), ['xt-1', 'xt-1', 'xt-1'])
  assert.equal(calls.length, 1)
  await Promise.all(instances.map(tokens => tokens.settle()))
})

test('a call that fails also fails for the instances that wait for it', async t => {
  const { clock, calls, called, open, begin } = await setUpInstances(t)
  const ticket = await begin()
  const asked = [open(), open()].map(tokens => tokens.get(ticket, sessionOf(ticket, 'at-1', clock.now), ONE))
  const settled = Promise.allSettled(asked)
  await called
  calls[0]?.fail()
  for (const { status, reason } of (await settled) as PromiseRejectedResult[]) {
    assert.equal(status, 'rejected')
    assert.ok(reason instanceof TokenExchangeError)
  }
  assert.equal(calls.length, 1)
})

test('the token in the store is not used after a refresh, nor for another ticket, target or scope', async t => {
  const { clock, calls, open, begin } = await setUpInstances(t)
  const [ticket, other] = [await begin(), await begin()]
  const ask = async (loaded: LoadedSession, by: string, target = ONE) => {
    const asked = open().get(by, loaded, target)
    const before = calls.length
    while (calls.length === before) await new Promise(resolve => setImmediate(resolve))
    const token = `xt-${randomUUID()}`
    calls.at(-1)?.answer(token)
    assert.equal(await asked, token)
  }
  await ask(sessionOf(ticket, 'at-1', clock.now), ticket)
  await ask(sessionOf(ticket, 'at-2', clock.now), ticket)
  await ask(sessionOf(other, 'at-1', clock.now), other)
  await ask(sessionOf(ticket, 'at-1', clock.now), ticket, exchangeTarget({ audience: 'two' }))
  await ask(sessionOf(ticket, 'at-1', clock.now), ticket, exchangeTarget({ audience: 'one', scope: 'a' }))
  // The record of a session does not open with another ticket.
  await ask(sessionOf(ticket, 'at-1', clock.now), other)
})

test('ending a session revokes and removes its exchanged tokens, and those of other sessions stay', async t => {
  const { clock, calls, revoked, store, open, begin } = await setUpInstances(t)
  const tokens = open()
  const tickets = [await begin(), await begin()]
  for (const ticket of tickets) {
    const asked = tokens.get(ticket, sessionOf(ticket, ticket, clock.now), ONE)
    while (calls.at(-1)?.accessToken !== ticket) await new Promise(resolve => setImmediate(resolve))
    calls.at(-1)?.answer('xt')
    await asked
  }
  const count = async (ticket: string) =>
    (await store.list({ label: `exchanged.${recordKey(ticket)}`, limit: 10 })).entries.length
  const [first = '', second = ''] = tickets
  assert.deepEqual([await count(first), await count(second)], [1, 1])
  await tokens.endAllOf(first, sessionOf(first, first, clock.now))
  await tokens.settle()
  assert.deepEqual(revoked, ['xt'])
  assert.deepEqual([await count(first), await count(second)], [0, 1])
})

test('ending a session removes all its exchanged tokens, even if they exceed a page of the store', async t => {
  const { clock, store, open, begin } = await setUpInstances(t)
  const ticket = await begin()
  const label = `exchanged.${recordKey(ticket)}`
  const entry = { value: Buffer.from('sealed'), expiresAt: clock.now + 60_000, labels: [label] }
  for (let index = 0; index < 150; index++) await store.create(`exchanged:${index}`, entry)
  await open().endAllOf(ticket, sessionOf(ticket, 'at-1', clock.now))
  assert.deepEqual((await store.list({ label, limit: 10 })).entries, [])
})

test('an exchange without an access token, or with one that is bound to a key, is rejected without a call', async t => {
  const { clock, calls, open, begin } = await setUpInstances(t)
  const ticket = await begin()
  const bound = sessionOf(ticket, 'at-1', clock.now)
  Object.assign(bound.session, { dpopKey: 'x.y.d' })
  for (const loaded of [sessionOf(ticket, '', clock.now), bound])
    await assert.rejects(open().get(ticket, loaded, ONE), TokenExchangeError)
  assert.equal(calls.length, 0)
})

test('a token that is exchanged while its session ends at another instance is revoked, removed and not used', async t => {
  const { clock, calls, called, revoked, store, open, begin } = await setUpInstances(t)
  const [one, other] = [open(), open()]
  const ticket = await begin()
  const asked = one.get(ticket, sessionOf(ticket, 'at-1', clock.now), ONE)
  const rejected = assert.rejects(asked, TokenExchangeError)
  await called
  await store.take(recordKey(ticket))
  await other.endAllOf(ticket, sessionOf(ticket, 'at-1', clock.now))
  calls[0]?.answer('xt-late')
  await rejected
  await one.settle()
  assert.deepEqual(revoked, ['xt-late'])
  assert.deepEqual((await store.list({ label: `exchanged.${recordKey(ticket)}`, limit: 10 })).entries, [])
})

test('an instance that stops waits until a token that it has just received for an ended session is revoked', async t => {
  const { clock, calls, called, revoked, store, open, begin } = await setUpInstances(t)
  const tokens = open()
  const ticket = await begin()
  const rejected = assert.rejects(tokens.get(ticket, sessionOf(ticket, 'at-1', clock.now), ONE), TokenExchangeError)
  await called
  await store.take(recordKey(ticket))
  const settled = tokens.settle()
  calls[0]?.answer('xt-late')
  await settled
  assert.deepEqual(revoked, ['xt-late'])
  await rejected
})

test('an exchange without an answer stops those of its user for its target; a missing connection stops all', async t => {
  const { clock, calls, open, begin } = await setUpInstances(t)
  const tokens = open()
  const ask = async (audience: string, settle: (call: (typeof calls)[number]) => void, sub?: string) => {
    const ticket = await begin()
    const asked = tokens.get(ticket, sessionOf(ticket, 'at-1', clock.now, sub), exchangeTarget({ audience }))
    const result = asked.then(
      () => 'token',
      ({ reason }: TokenExchangeError) => reason,
    )
    const before = calls.length
    for (let n = 0; n < 20 && calls.length === before; n++) await new Promise(resolve => setImmediate(resolve))
    const call = calls[before]
    if (call) settle(call)
    return result
  }
  const noAnswer = new MenshenError('provider_unreachable', 'no answer')
  assert.equal(await ask('slow', call => call.fail(noAnswer)), 'provider_unreachable')
  assert.equal(await ask('slow', call => call.answer('xt')), 'recently_failed')
  assert.equal(await ask('quick', call => call.answer('xt')), 'token')
  assert.equal(await ask('slow', call => call.answer('xt'), 'other-user'), 'token')
  assert.equal(
    await ask('quick', call => call.fail(new UnsentRequestError('ECONNREFUSED', undefined))),
    'provider_unreachable',
  )
  assert.equal(await ask('other', call => call.answer('xt'), 'other-user'), 'recently_failed')
})
