// Tickets of hosts, as several instances on one store see them.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createHostTickets } from '../../src/hosts/tickets.ts'
import { newTicket } from '../../src/session/ticket.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { allEntries } from '../../src/stores/pages.ts'

test('a host ticket that one instance replaces is no longer valid at another instance that cached it', async () => {
  const now = () => Date.parse('2026-03-01T08:00:00Z')
  const store = createMemoryStore({ now })
  const settings = { SESSION_MAX_HOURS: 12, SESSION_CACHE_SIZE: 100 }
  const [one, other] = [createHostTickets({ store, settings }), createHostTickets({ store, settings })]
  const sessionTicket = newTicket()
  const session = { key: 'session:a', signedInAt: now() }
  const ticket = await one.create('wiki.test', sessionTicket, session)
  for (const tickets of [one, other]) {
    assert.equal(await tickets.get('wiki.test', ticket), sessionTicket)
    assert.equal(tickets.getSync('wiki.test', ticket), sessionTicket)
    assert.equal(await tickets.get('grafana.test', ticket), undefined)
    assert.equal(tickets.getSync('grafana.test', ticket), undefined)
    assert.equal(tickets.getSync('wiki.test', ticket), sessionTicket, 'the question of another host changes nothing')
  }
  const next = await one.create('wiki.test', sessionTicket, session)
  await one.remove('wiki.test', ticket)
  for (const tickets of [one, other]) {
    assert.equal(tickets.getSync('wiki.test', ticket), undefined)
    assert.equal(await tickets.get('wiki.test', ticket), undefined)
    assert.equal(await tickets.get('wiki.test', next), sessionTicket)
  }
  await other.removeAllOf(session.key)
  assert.equal(await one.get('wiki.test', next), undefined, 'a sign-out elsewhere ends it, too')
})

test('a sign-out removes all host tickets of the session, however many there are, and none of another session', async () => {
  const now = () => Date.parse('2026-03-01T08:00:00Z')
  const store = createMemoryStore({ now })
  const tickets = createHostTickets({ store, settings: { SESSION_MAX_HOURS: 12, SESSION_CACHE_SIZE: 100 } })
  const enter = (key: string, n = 0) => tickets.create(`wiki-${n}.test`, newTicket(), { key, signedInAt: now() })
  const entered = await Promise.all(Array.from({ length: 250 }, (_, n) => enter('session:a', n)))
  const other = await enter('session:b')
  await tickets.removeAllOf('session:a')
  assert.deepEqual(await allEntries(store, 'hosts.session:a'), [])
  for (const [n, ticket] of entered.entries()) assert.equal(await tickets.get(`wiki-${n}.test`, ticket), undefined)
  assert.notEqual(await tickets.get('wiki-0.test', other), undefined)
})

test('a session has at most a hundred tickets at a host, among them the newest, and none is removed at other hosts', async () => {
  const now = () => Date.parse('2026-03-01T08:00:00Z')
  const store = createMemoryStore({ now })
  const tickets = createHostTickets({ store, settings: { SESSION_MAX_HOURS: 12, SESSION_CACHE_SIZE: 100 } })
  const enter = (host: string, key = 'session:a') => tickets.create(host, newTicket(), { key, signedInAt: now() })
  const elsewhere = await enter('grafana.test')
  const ofOther = await enter('wiki.test', 'session:b')
  await Promise.all(Array.from({ length: 130 }, () => enter('wiki.test')))
  for (let n = 0; n < 30; n++)
    assert.notEqual(await tickets.get('wiki.test', await enter('wiki.test')), undefined, 'the newest')
  const left = (await allEntries(store, 'hosts.session:a')).filter(({ key }) => key.includes('wiki.test'))
  assert.ok(left.length > 50 && left.length <= 100, String(left.length))
  assert.notEqual(await tickets.get('grafana.test', elsewhere), undefined)
  assert.notEqual(await tickets.get('wiki.test', ofOther), undefined)
})
