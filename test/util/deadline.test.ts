// A deadline: the result of the work in time, and otherwise what the caller wants in its place.

import assert from 'node:assert/strict'
import test from 'node:test'
import { withDeadline } from '../../src/util/deadline.ts'

const never = () => new Promise<never>(() => {})

test('work that is done in time gives its result or its error', async () => {
  assert.equal(await withDeadline(Promise.resolve('done'), 1000), 'done')
  await assert.rejects(withDeadline(Promise.reject(new Error('broken')), 1000), /broken/)
})

test('work that takes too long is rejected, or replaced by the result of a function of the caller', async () => {
  await assert.rejects(withDeadline(never(), 5), /No answer within 5 ms\./)
  assert.equal(await withDeadline(never(), 5, () => 'instead'), 'instead')
  const refuse = () => {
    throw new Error('too slow')
  }
  await assert.rejects(withDeadline(never(), 5, refuse), /too slow/)
})

test('a response that arrived while the process was busy is used, though the deadline has passed', async () => {
  const answered = Promise.withResolvers<string>()
  setTimeout(() => setImmediate(() => answered.resolve('answer')), 5)
  const waited = withDeadline(answered.promise, 10)
  const busyUntil = performance.now() + 30
  while (performance.now() < busyUntil);
  assert.equal(await waited, 'answer')
})

test('work that fails after its deadline does not end the process', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  assert.equal(await withDeadline(promise, 5, () => 'instead'), 'instead')
  reject(new Error('late'))
  await new Promise(resolve => setImmediate(resolve))
})
