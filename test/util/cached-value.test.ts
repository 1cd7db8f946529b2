// A cached value: loaded once for all callers, kept until it expires, and never kept as a failure longer than asked for.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type CachedValueOptions, createCachedValue } from '../../src/util/cached-value.ts'

/** A cache with a clock of the test, whose loads last until the test resolves them. */
function createHeldCache(options: Partial<CachedValueOptions<string>> = {}) {
  const clock = { now: 1_000_000 }
  const loads: PromiseWithResolvers<string>[] = []
  const cache = createCachedValue<string>({
    load() {
      const loading = Promise.withResolvers<string>()
      loads.push(loading)
      return loading.promise
    },
    freshMs: 1000,
    now: () => clock.now,
    ...options,
  })
  return { clock, loads, cache }
}

test('all callers during a load get its result, and nothing is loaded again until it expires', async () => {
  const { clock, loads, cache } = createHeldCache()
  const asked = [cache.get(), cache.get(), cache.get()]
  loads[0]?.resolve('first')
  assert.deepEqual(await Promise.all(asked), ['first', 'first', 'first'])
  clock.now += 999
  assert.equal(await cache.get(), 'first')
  assert.equal(loads.length, 1)
  clock.now += 1
  const next = cache.get()
  loads[1]?.resolve('second')
  assert.equal(await next, 'second')
  assert.equal(cache.latest(), 'second')
})

test('the time for which a value is fresh can depend on the value', async () => {
  const { clock, loads, cache } = createHeldCache({ freshMs: value => Number(value) })
  const asked = cache.get()
  loads[0]?.resolve('50')
  await asked
  clock.now += 49
  assert.ok(cache.isFresh())
  clock.now += 1
  assert.ok(!cache.isFresh())
})

test('a value from the future is not fresh: the clock may have been set back', async () => {
  const { clock, loads, cache } = createHeldCache()
  const asked = cache.get()
  loads[0]?.resolve('first')
  await asked
  clock.now -= 5000
  assert.ok(!cache.isFresh())
})

test('a failure is passed on to all waiting callers, and the next caller loads again', async () => {
  const { loads, cache } = createHeldCache()
  const asked = [cache.get(), cache.get()]
  loads[0]?.reject(new Error('away'))
  for (const each of asked) await assert.rejects(each, /away/)
  assert.equal(cache.recentFailure(), undefined)
  const next = cache.get()
  loads[1]?.resolve('back')
  assert.equal(await next, 'back')
})

test('with a pause between attempts, callers within the pause get the same failure', async () => {
  const { clock, loads, cache } = createHeldCache({ retryMs: 100 })
  const asked = cache.get()
  loads[0]?.reject(new Error('away'))
  await assert.rejects(asked, /away/)
  clock.now += 99
  await assert.rejects(cache.get(), /away/)
  assert.equal(loads.length, 1)
  clock.now += 1
  const next = cache.get()
  loads[1]?.resolve('back')
  assert.equal(await next, 'back')
  assert.equal(cache.recentFailure(), undefined)
})

test('an expired value can be used while the next one loads, and after that load has failed', async () => {
  const { clock, loads, cache } = createHeldCache({ staleWhileReloading: true, retryMs: 100 })
  const asked = cache.get()
  loads[0]?.resolve('old')
  await asked
  clock.now += 1000
  assert.equal(await cache.get(), 'old')
  assert.equal(await cache.get(), 'old')
  assert.equal(loads.length, 2)
  const reload = cache.reload()
  loads[1]?.reject(new Error('away'))
  await assert.rejects(reload, /away/)
  assert.equal(await cache.get(), 'old')
  assert.equal(loads.length, 2, 'not within the pause')
  clock.now += 100
  assert.equal(await cache.get(), 'old')
  loads[2]?.resolve('new')
  assert.equal(await cache.reload(), 'new')
  assert.equal(loads.length, 3)
})

test('the result of a load that was forgotten is not kept', async () => {
  const { loads, cache } = createHeldCache()
  const early = cache.get()
  cache.invalidate()
  const late = cache.get()
  loads[1]?.resolve('late')
  assert.equal(await late, 'late')
  loads[0]?.resolve('early')
  assert.equal(await early, 'early')
  assert.equal(await cache.get(), 'late')
})

test('a value is forgotten only if it is the one in the cache', async () => {
  const { loads, cache } = createHeldCache()
  const asked = cache.get()
  loads[0]?.resolve('first')
  await asked
  cache.invalidate('another')
  assert.equal(cache.latest(), 'first')
  cache.invalidate('first')
  assert.equal(cache.latest(), undefined)
})
