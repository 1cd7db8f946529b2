// The lease of a refresh, between instances that share a store: one asks the provider, the others wait, and neither a
// crash nor a late comer costs the user the session.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { MenshenError } from '../../src/errors.ts'
import { createLeases } from '../../src/session/lease.ts'
import type { Sessions } from '../../src/session/sessions.ts'

import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { createScene, LEASE_MS, LIFE, openDue, START, settle, signedIn, tokens } from './doubles.ts'

/** Longer than a waiter's pause between two looks. */
const A_LOOK_MS = 150

test('only one of two instances asks the provider, and the other gets its tokens', async () => {
  const scene = createScene()
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const pages = [one.getFresh(ticket), other.getFresh(ticket), one.getFresh(ticket), other.getFresh(ticket)]
  const call = await scene.call(1)
  await pause(A_LOOK_MS)
  call.give(tokens('second'))
  assert.deepEqual((await Promise.all(pages)).map(accessToken), Array(4).fill('access-second'))
  assert.equal(scene.asked.length, 1)
})

test('a request does not wait for the lease to be released, but the next refresh and settle do', async () => {
  const disk = Promise.withResolvers<void>()
  const through = (store: Store): Store => ({
    ...store,
    async replace(key, entry, version) {
      if (key.startsWith('lease:')) await disk.promise
      return store.replace(key, entry, version)
    },
  })
  const scene = createScene({ through })
  const one = scene.instance('one')
  const ticket = await openDue(scene, one)
  const page = one.getFresh(ticket)
  // Due again at once, so that the lease is wanted soon.
  ;(await scene.call(1)).give({ ...tokens('second'), expiresIn: 290 })
  assert.equal(accessToken(await page), 'access-second')
  const next = one.getFresh(ticket)
  let isSettled = false
  const settled = one.settle().then(() => {
    isSettled = true
  })
  await settle()
  assert.deepEqual([scene.asked.length, isSettled], [1, false])
  disk.resolve()
  ;(await scene.call(2)).give(tokens('third'))
  assert.equal(accessToken(await next), 'access-third')
  await settled
})

test('a lease that was given back can be taken, also by a clock that is behind or was set back', async () => {
  const clock = { now: START }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  // Among other records, one that has expired is not removed at once.
  const record = { value: new Uint8Array(), expiresAt: START + LIFE * 1000, labels: [] }
  for (let n = 0; n < 100; n++) await store.create(`record ${n}`, record)
  const [one, other] = [createLeases(store, LEASE_MS, now, () => {}), createLeases(store, LEASE_MS, now, () => {})]
  const lease = (await one.take('session')) ?? assert.fail('it is free')
  assert.equal(await other.take('session'), undefined)
  lease.release()
  await one.settle()
  clock.now -= 3_600_000
  const next = (await other.take('session')) ?? assert.fail('it is still taken')
  next.letExpire()
})

test('the lease of a session that is not due again is left to expire, which saves a write', async () => {
  const scene = createScene()
  const one = scene.instance('one')
  const ticket = await openDue(scene, one)
  const page = one.getFresh(ticket)
  ;(await scene.call(1)).give(tokens('second'))
  const loaded = await page
  assert.ok(typeof loaded === 'object')
  await one.settle()
  const lease = await scene.store.read(`lease:${loaded.key}`)
  assert.equal(lease?.expiresAt, scene.now() + LEASE_MS)
  scene.pass((LIFE - 300) * 1000)
  const again = scene.instance('other').getFresh(ticket)
  ;(await scene.call(2)).give(tokens('third'))
  assert.equal(accessToken(await again), 'access-third')
})

test('a provider that takes eight seconds to respond is asked only once', async () => {
  const scene = createScene()
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const pages = [one.getFresh(ticket), other.getFresh(ticket)]
  const call = await scene.call(1)
  for (let second = 0; second < 8; second++) {
    scene.pass(1000)
    await pause(A_LOOK_MS)
  }
  call.give(tokens('second'))
  assert.deepEqual((await Promise.all(pages)).map(accessToken), ['access-second', 'access-second'])
  assert.equal(scene.asked.length, 1)
})

test('100 requests that wait for a lease poll the store together instead of one by one', async () => {
  const calls: string[] = []
  const counted = (store: Store, name: string): Store => {
    if (name !== 'other') return store
    const { create, read } = store
    return {
      ...store,
      create(...args) {
        calls.push('create')
        return create(...args)
      },
      read(...args) {
        calls.push('read')
        return read(...args)
      },
    }
  }
  const scene = createScene({ through: counted })
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const holder = one.getFresh(ticket)
  const call = await scene.call(1)
  // Each request finds its session first; after that, all of them wait together.
  const waiters = Array.from({ length: 100 }, () => other.getFresh(ticket))
  await settle()
  calls.length = 0
  const began = performance.now()
  await pause(1000)
  const tenths = (performance.now() - began) / 100
  assert.ok(calls.length <= 2 * (tenths + 1), `${calls.length} calls of the store in ${tenths / 10} seconds`)
  call.give(tokens('second'))
  await Promise.all([holder, ...waiters])
  assert.equal(scene.asked.length, 1)
})

test('the lease of a crashed instance expires, and another instance takes over', async () => {
  const scene = createScene()
  const [crashed, other] = [scene.instance('crashed'), scene.instance('other')]
  const ticket = await openDue(scene, crashed)
  void crashed.getFresh(ticket) // and never a word again
  await scene.call(1)
  const page = other.getFresh(ticket)
  scene.pass(LEASE_MS - 1)
  await pause(A_LOOK_MS)
  assert.equal(scene.asked.length, 1, 'while the lease lasts, nobody else asks')
  scene.pass(2)
  const call = await scene.call(2)
  assert.equal(call.by, 'other')
  call.give(tokens('second'))
  assert.equal(accessToken(await page), 'access-second')
})

test('waiting for another instance’s lease does not block refreshes of other sessions', async () => {
  const scene = createScene({ parallel: 1 })
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const { ticket: waited } = await one.open(signedIn(tokens('first')))
  const ticket = await openDue(scene, other)
  const pages = [one.getFresh(waited)]
  const slow = await scene.call(1)
  pages.push(other.getFresh(waited))
  await settle()
  const page = other.getFresh(ticket)
  await pause(A_LOOK_MS)
  const calls = scene.asked.length
  slow.give(tokens('second'))
  ;(await scene.call(2)).give(tokens('second'))
  await Promise.all([...pages, page])
  assert.equal(calls, 2)
})

test('a session whose token expires while its refresh is queued is still refreshed', async () => {
  const scene = createScene({ parallel: 1 })
  const one = scene.instance('one')
  const { ticket: before } = await one.open(signedIn(tokens('first')))
  const ticket = await openDue(scene, one)
  scene.pass(199_000)
  const pages = [one.getFresh(before), one.getFresh(ticket)]
  const slow = await scene.call(1)
  scene.pass(3000)
  slow.give(tokens('second'))
  await pages[0]
  await settle()
  scene.asked[1]?.give(tokens('second'))
  assert.equal(accessToken(await pages[1]), 'access-second')
})

/** A slow instance asks, its lease expires, and another instance asks as well. Neither has an answer yet. */
async function loseLease(scene: ReturnType<typeof createScene>) {
  const [slow, other] = [scene.instance('slow'), scene.instance('other')]
  const ticket = await openDue(scene, slow)
  const late = slow.getFresh(ticket)
  const first = await scene.call(1)
  scene.pass(LEASE_MS + 1)
  const page = other.getFresh(ticket)
  return { ticket, other, late, first, page, second: await scene.call(2) }
}

test('an instance that lost its lease does not overwrite newer tokens, and serves them', async () => {
  const scene = createScene()
  const { ticket, other, late, first, page, second } = await loseLease(scene)
  second.give(tokens('newer'))
  assert.equal(accessToken(await page), 'access-newer')
  first.give(tokens('older'))
  assert.equal(accessToken(await late), 'access-newer')
  assert.equal(accessToken(await other.getFresh(ticket)), 'access-newer')
  assert.deepEqual(scene.revoked, [], 'a provider that revokes what belongs together would end the session')
})

for (const code of ['provider_refused', 'provider_unreachable'] as const)
  test(`an instance that lost its lease and fails with ${code} does not end the session that another one refreshed`, async () => {
    const scene = createScene()
    const { ticket, other, late, first, page, second } = await loseLease(scene)
    second.give(tokens('newer'))
    await page
    first.fail(code)
    assert.equal(accessToken(await late), 'access-newer')
    assert.equal(accessToken(await other.getFresh(ticket)), 'access-newer')
  })

test('an instance that lost its lease does not release its successor’s, so no third instance asks the provider', async () => {
  const scene = createScene({ keep: true })
  const { ticket, other, late, first, page, second } = await loseLease(scene)
  const third = scene.instance('third')
  const waiter = third.getFresh(ticket)
  await settle()
  first.fail('provider_unreachable')
  await pause(A_LOOK_MS)
  const calls = scene.asked.map(({ by }) => by)
  second.give(tokens('newer'))
  scene.asked[2]?.fail('provider_refused') // it would be the spent token
  assert.deepEqual(
    (await Promise.all([page, waiter, other.getFresh(ticket)])).map(accessToken),
    Array(3).fill('access-newer'),
  )
  await late
  assert.deepEqual(calls, ['slow', 'other'])
})

test('an instance that lost its lease and fails does not end the session while another one is refreshing it', async () => {
  const scene = createScene()
  const { ticket, late, first, page, second } = await loseLease(scene)
  const third = scene.instance('third')
  const waiter = third.getFresh(ticket)
  await settle()
  first.fail('provider_unreachable')
  await settle()
  second.give(tokens('newer'))
  assert.deepEqual((await Promise.all([page, late, waiter])).map(accessToken), Array(3).fill('access-newer'))
  assert.equal(scene.asked.length, 2)
})

test('an instance whose lease expired before its call does not ask the provider, as the token may be spent', async () => {
  // As when a machine sleeps, or a disk takes its time, between the lease and the call.
  const stuck = Promise.withResolvers<void>()
  const sleepy = (store: Store, name: string): Store => {
    if (name !== 'sleepy') return store
    let asleep = false
    return {
      ...store,
      async create(key, entry) {
        const created = await store.create(key, entry)
        asleep = key.startsWith('lease:')
        return created
      },
      async read(key) {
        const found = await store.read(key)
        if (asleep) await stuck.promise
        return found
      },
      // As of a store that has to be asked.
      isCurrent: (...args) => !asleep && store.isCurrent(...args),
    }
  }
  const scene = createScene({ through: sleepy })
  const [slow, other] = [scene.instance('sleepy'), scene.instance('other')]
  const ticket = await openDue(scene, other)
  const late = slow.getFresh(ticket)
  await settle()
  scene.pass(LEASE_MS + 1)
  const page = other.getFresh(ticket)
  ;(await scene.call(1)).give(tokens('newer'))
  await page
  stuck.resolve()
  await settle()
  const calls = scene.asked.map(({ by, refreshToken }) => `${by}: ${refreshToken}`)
  for (const call of scene.asked.slice(1)) call.fail('provider_refused')
  assert.equal(accessToken(await late), 'access-newer')
  assert.deepEqual(calls, ['other: refresh-first'], 'a spent token was used again')
})

test('an instance that slept right after taking its lease does not mistake its successor’s lease for its own', async () => {
  const asleep = Promise.withResolvers<void>()
  const awake = Promise.withResolvers<void>()
  const sleepy = (store: Store, name: string): Store => {
    if (name !== 'sleepy') return store
    return {
      ...store,
      async create(key, entry) {
        const created = await store.create(key, entry)
        if (!key.startsWith('lease:')) return created
        asleep.resolve()
        await awake.promise
        return created
      },
    }
  }
  const scene = createScene({ through: sleepy })
  const [slow, other] = [scene.instance('sleepy'), scene.instance('other')]
  const ticket = await openDue(scene, other)
  const late = slow.getFresh(ticket)
  await asleep.promise
  scene.pass(LEASE_MS + 1)
  const page = other.getFresh(ticket)
  const call = await scene.call(1)
  awake.resolve()
  await settle()
  const calls = scene.asked.map(({ by }) => by)
  call.give(tokens('newer'))
  for (const again of scene.asked.slice(1)) again.fail('provider_refused') // it would be the spent token
  assert.deepEqual((await Promise.all([page, late])).map(accessToken), ['access-newer', 'access-newer'])
  assert.deepEqual(calls, ['other'], 'a token was used twice')
})

test('a sign-out during a refresh wins in both the refreshing and the waiting instance', async () => {
  const scene = createScene()
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const pages = [one.getFresh(ticket), other.getFresh(ticket)]
  const call = await scene.call(1)
  await other.close(ticket)
  call.give(tokens('second'))
  assert.deepEqual(await Promise.all(pages), [undefined, undefined])
  for (const sessions of [one, other, scene.instance('new')]) assert.equal(await sessions.getFresh(ticket), undefined)
  assert.equal(scene.asked.length, 1)
  assert.deepEqual(scene.revoked, ['refresh-second'])
})

test('a sign-out at any step of a refresh wins', async () => {
  // The steps are the calls of the store that a refresh makes.
  for (let step = 1; step <= 8; step++) {
    let calls = 0
    let signOut = async () => {}
    const between = (store: Store, name: string): Store => {
      if (name !== 'one') return store
      const then = async () => {
        if (++calls === step) await signOut()
      }
      const before = <A extends unknown[], R>(verb: (...args: A) => Promise<R>) => {
        return async (...args: A): Promise<R> => {
          await then()
          return verb(...args)
        }
      }
      return {
        ...store,
        create: before(store.create),
        read: before(store.read),
        replace: before(store.replace),
        remove: before(store.remove),
      }
    }
    const scene = createScene({ through: between })
    const [one, other] = [scene.instance('one'), scene.instance('other')]
    const ticket = await openDue(scene, other)
    const closed: (string | undefined)[] = []
    signOut = async () => void closed.push((await other.close(ticket))?.session.refreshToken)
    const page = one.getFresh(ticket)
    await settle()
    scene.asked[0]?.give(tokens('second'))
    await page
    if (calls < step) await signOut()
    for (const sessions of [one, other, scene.instance('new')])
      assert.equal(await sessions.getFresh(ticket), undefined, `signed out before call ${step} of the store`)
    const living = scene.asked.length > 0 ? 'refresh-second' : 'refresh-first'
    assert.ok([...closed, ...scene.revoked].includes(living), `the latest token is revoked after call ${step}`)
  }
})

test('with REFRESH_FAILURE=keep a failure applies to all instances, and waiters do not retry immediately', async () => {
  const scene = createScene({ keep: true })
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const pages = [one.getFresh(ticket), other.getFresh(ticket)]
  const call = await scene.call(1)
  await settle()
  call.fail('provider_unreachable')
  await pause(2 * A_LOOK_MS)
  const calls = scene.asked.length
  for (const again of scene.asked.slice(1)) again.fail('provider_unreachable')
  assert.deepEqual((await Promise.all(pages)).map(accessToken), ['access-first', 'access-first'])
  assert.equal(calls, 1)
})

test('with REFRESH_FAILURE=keep a refusal ends the session for all instances', async () => {
  const scene = createScene({ keep: true })
  const [one, other] = [scene.instance('one'), scene.instance('other')]
  const ticket = await openDue(scene, one)
  const pages = [one.getFresh(ticket), other.getFresh(ticket)]
  ;(await scene.call(1)).fail('provider_refused')
  assert.deepEqual(await Promise.all(pages), ['ended', undefined])
  assert.equal(scene.asked.length, 1)
})

test('with REFRESH_FAILURE=keep pauses between attempts grow to at most 30 s until the token expires', async () => {
  const scene = createScene({ keep: true })
  const one = scene.instance('one')
  const ticket = await openDue(scene, one)
  const attempts: number[] = []
  const begin = scene.now()
  for (let second = 0; second < 205; second++) {
    const page = one.getFresh(ticket)
    await settle()
    const call = scene.asked[attempts.length]
    if (call) attempts.push((scene.now() - begin) / 1000)
    call?.fail('provider_unreachable')
    const outcome = await page
    assert.equal(typeof outcome === 'object', second < 200, `after ${second} seconds`)
    scene.pass(1000)
  }
  const pauses = attempts.slice(1).map((at, n) => at - (attempts[n] ?? 0))
  assert.ok(attempts.length >= 5 && attempts.length <= 15, `attempts at ${attempts}`)
  assert.ok(Math.max(...pauses) <= 30)
  assert.deepEqual(
    pauses.slice(0, -1),
    pauses.slice(0, -1).toSorted((a, b) => a - b),
  )
})

/** A store that can be away. */
function createShaky() {
  const state = { away: false }
  const through = (store: Store): Store => {
    const andThen = <A extends unknown[], R>(verb: (...args: A) => Promise<R>) => {
      return async (...args: A): Promise<R> => {
        if (state.away) throw new MenshenError('store_unavailable', 'as the test says')
        return verb(...args)
      }
    }
    return {
      ...store,
      isCurrent: (...args) => !state.away && store.isCurrent(...args),
      create: andThen(store.create),
      read: andThen(store.read),
      replace: andThen(store.replace),
      remove: andThen(store.remove),
    }
  }
  return { state, through }
}

test('a token that is saved minutes after it was received still expires at its original time', async () => {
  const { state, through } = createShaky()
  const scene = createScene({ through })
  const one = scene.instance('one')
  const ticket = await openDue(scene, one)
  const page = one.getFresh(ticket)
  const call = await scene.call(1)
  state.away = true
  const received = scene.now()
  call.give(tokens('second'))
  await settle()
  assert.ok(scene.events.some(({ event }) => event === 'tokens_not_saved'))
  scene.pass(150_000)
  state.away = false
  const saved = await page
  assert.equal(accessToken(saved), 'access-second')
  assert.equal(typeof saved === 'object' && saved.expiresAt, received + LIFE * 1000)
})

for (const awayMs of [500, 4500])
  test(`tokens from the provider survive a store outage of ${awayMs} ms`, async () => {
    const { state, through } = createShaky()
    const scene = createScene({ through })
    const one = scene.instance('one')
    const ticket = await openDue(scene, one)
    const page = one.getFresh(ticket).catch((error: MenshenError) => error.code)
    const call = await scene.call(1)
    state.away = true
    call.give(tokens('second'))
    await pause(awayMs)
    state.away = false
    const outcome = await page
    if (typeof outcome === 'string') assert.equal(outcome, 'store_unavailable')
    else assert.equal(accessToken(outcome), 'access-second')
    // Whatever the first request got, the next one is served with what the provider gave.
    scene.pass(LEASE_MS + 1)
    const next = one.getFresh(ticket)
    await pause(A_LOOK_MS)
    scene.asked[1]?.fail('provider_refused') // it would be the spent token
    assert.equal(accessToken(await next), 'access-second')
  })

function accessToken(refreshed: Awaited<ReturnType<Sessions['getFresh']>>): string | undefined {
  return typeof refreshed === 'object' ? refreshed.session.accessToken : refreshed
}

test('a lease is renewed while its holder works, and expires once the holder stops renewing it', async t => {
  const { timers } = t.mock
  timers.enable({ apis: ['setInterval', 'Date'], now: START })
  const store = createMemoryStore({ now: Date.now })
  const leases = createLeases(store, 60, Date.now, () => {})
  const lease = (await leases.take('a')) ?? assert.fail()
  assert.equal((await store.read('lease:a'))?.expiresAt, START + 60)
  while (Date.now() < START + 120) {
    assert.equal(await leases.take('a'), undefined)
    assert.ok(await lease.isOurs())
    timers.tick(10)
    await settle()
  }
  lease.letExpire()
  timers.tick(60)
  assert.equal(await store.read('lease:a'), undefined)
  assert.equal(await lease.isOurs(), false)
  const next = (await leases.take('a')) ?? assert.fail()
  next.release()
  await leases.settle()
  assert.equal(await store.read('lease:a'), undefined)
  await store.close()
})

test('waitForHolder reports whether the holder of a lease is done, has failed or has died', async () => {
  const clock = { now: START }
  const store = createMemoryStore({ now: () => clock.now })
  const leases = createLeases(
    store,
    LEASE_MS,
    () => clock.now,
    () => {},
  )
  const take = async () => (await leases.take('a')) ?? assert.fail()
  const never = async () => false

  const lease = await take()
  assert.equal(await leases.waitForHolder('a', async () => true), 'done')
  let looks = 0
  const finishedBetweenTwoReads = async () => {
    lease.release()
    await leases.settle()
    return ++looks > 1
  }
  assert.equal(await leases.waitForHolder('a', finishedBetweenTwoReads), 'done')

  const failing = await take()
  const failed = leases.waitForHolder('a', never)
  await settle()
  failing.release()
  assert.equal(await failed, 'failed')

  const dying = await take()
  const expired = leases.waitForHolder('a', never)
  await settle()
  dying.letExpire()
  clock.now += LEASE_MS
  assert.equal(await expired, 'expired')
  await store.close()
})

test('a lease is given back if the store executes the call that takes it after the call has failed', async () => {
  const { store, leases } = openLeases()
  const late = Promise.withResolvers<void>()
  store.fault = async change => {
    void late.promise.then(change)
    throw new Error('no answer')
  }
  await assert.rejects(leases[0].take('a'), /no answer/)
  store.fault = undefined
  late.resolve()
  await settle()
  const waiting = leases[1].waitForHolder('a', async () => false)
  assert.equal(await waiting, 'failed')
  ;((await leases[1].take('a')) ?? assert.fail()).release()
  await leases[1].settle()
})

test('an instance takes its lease again at once if the call that took it had failed although the store executed it', async () => {
  const { store, leases } = openLeases()
  store.fault = async change => {
    await change()
    throw new Error('no answer')
  }
  await assert.rejects(leases[0].take('a'), /no answer/)
  store.fault = undefined
  assert.ok(await leases[0].take('a'))
})

test('a lease that could not be released is released once the store answers again', async () => {
  const { store, leases } = openLeases()
  const lease = (await leases[0].take('a')) ?? assert.fail()
  store.fault = async () => {
    throw new Error('no answer')
  }
  lease.release()
  await leases[0].settle()
  store.fault = undefined
  assert.equal(await leases[1].waitForHolder('a', async () => false), 'failed')
})

/** Two instances, and a store that can fail. */
function openLeases() {
  const now = () => START
  const memory = createMemoryStore({ now })
  const store: { fault: ((change: () => Promise<unknown>) => Promise<never>) | undefined } = { fault: undefined }
  const fail = <Result>(change: () => Promise<Result>) => store.fault?.(change) ?? change()
  const failing: Store = {
    ...memory,
    create: (key, entry) => fail(() => memory.create(key, entry)),
    replace: (key, entry, version) => fail(() => memory.replace(key, entry, version)),
  }
  const open = () => createLeases(failing, LEASE_MS, now, () => {})
  return { store, leases: [open(), open()] as const }
}
