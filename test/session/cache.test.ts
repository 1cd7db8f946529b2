// Opened sessions at hand: no more than the settings say, and those who come often rather than those who came last.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createSessionCache, type LoadedSession } from '../../src/session/cache.ts'
import { newFreshness } from '../../src/stores/store.ts'
import { createRandom } from '../security/random.ts'

const BYTES = 300

function loadedAs(key: string): LoadedSession {
  const userInfo = { sub: key, ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '', username: key }
  const session = {
    isAuthenticated: true as const,
    accessToken: 'at',
    tokenIssuedAt: 0,
    tokenExpiresIn: 0,
    userInfo,
    userRole: 'common',
  }
  return {
    key,
    version: 1,
    expiresAt: 0,
    signedInAt: 0,
    seenAt: 0,
    session,
    user: session,
    who: { role: 'common', username: key, groups: [], sub: key },
    confirmedAt: 0,
    ...newFreshness(),
  }
}

function open(size: number, megabytes = 1000) {
  const cache = createSessionCache({ SESSION_CACHE_SIZE: size, SESSION_CACHE_MB: megabytes })
  assert.ok(cache)
  return {
    ...cache,
    /** As a request does: what is not there is opened and kept. */
    visit(ticket: string, bytes = BYTES): boolean {
      const isHit = cache.get(ticket) !== undefined
      if (!isHit) cache.set(ticket, loadedAs(ticket), bytes)
      return isHit
    },
    held: (tickets: readonly string[]) => tickets.filter(ticket => cache.get(ticket)).length,
  }
}

function users(count: number, name = 'user'): string[] {
  return Array.from({ length: count }, (_, n) => `${name}-${n}`)
}

test('the cache keeps at most SESSION_CACHE_SIZE sessions, and 0 for either cache setting disables it', () => {
  const cache = open(100)
  for (const ticket of users(100)) cache.visit(ticket)
  assert.equal(cache.held(users(100)), 100)
  for (const ticket of users(50, 'more')) cache.visit(ticket)
  assert.equal(cache.held([...users(100), ...users(50, 'more')]), 100)
  assert.equal(createSessionCache({ SESSION_CACHE_SIZE: 0, SESSION_CACHE_MB: 100 }), undefined)
  assert.equal(createSessionCache({ SESSION_CACHE_SIZE: 100, SESSION_CACHE_MB: 0 }), undefined)
})

test('50,000 one-time visitors do not evict the sessions of regular users from the cache', () => {
  const cache = open(1000)
  const regulars = users(800, 'regular')
  for (const ticket of [...regulars, ...regulars]) cache.visit(ticket)
  for (const [n, ticket] of users(50_000, 'once').entries()) {
    cache.visit(ticket)
    // Each of them comes now and then meanwhile.
    if (n % 10 === 0) cache.visit(regulars[(n / 10) % regulars.length] ?? '')
  }
  assert.equal(cache.held(regulars), regulars.length)
})

test('cached sessions of users who stay away make room for those of active users', () => {
  const cache = open(1000)
  const before = users(1000, 'before')
  for (const ticket of [...before, ...before, ...before]) cache.visit(ticket)
  for (let round = 0; round < 5; round++)
    for (const ticket of users(900, 'after')) for (let page = 0; page < 3; page++) cache.visit(ticket)
  assert.equal(cache.held(users(900, 'after')), 900)
})

test('SESSION_CACHE_MB limits the cache by size, and a session larger than the limit is not cached', () => {
  const cache = open(1_000_000, 1)
  for (const ticket of users(10_000, 'short')) cache.visit(ticket)
  const short = cache.held(users(10_000, 'short'))
  assert.ok(short > 300 && short * BYTES < 2 ** 20, `${short}`)
  const others = open(1_000_000, 1)
  for (const ticket of users(10_000, 'long')) others.visit(ticket, 20_000)
  const long = others.held(users(10_000, 'long'))
  assert.ok(long > 10 && long * 20_000 < 2 ** 20, `${long}`)
  // One that is larger than all the room there is.
  others.visit('huge', 2 ** 21)
  assert.equal(others.get('huge'), undefined)
  others.visit('small')
  assert.ok(others.get('small'))
})

test('after random changes, the cache only returns the latest state of a session and stays within its size', () => {
  const random = createRandom(42)
  const cache = open(50)
  const latest = new Map<string, LoadedSession>()
  for (let n = 0; n < 20_000; n++) {
    const ticket = `user-${random.below(200)}`
    if (random.chance(0.2)) {
      cache.delete(ticket)
      latest.delete(ticket)
    } else if (random.chance(0.4)) {
      const loaded = loadedAs(ticket)
      cache.set(ticket, loaded, random.below(1000))
      latest.set(ticket, loaded)
    } else {
      const found = cache.get(ticket)
      assert.ok(found === undefined || found === latest.get(ticket))
    }
  }
  assert.ok(cache.held([...latest.keys()]) <= 50)
})
