// Signals of sessions, with a store that answers late, fails, or has to be asked about thousands.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadedSession } from '../../src/session/cache.ts'
import { createEndSignals } from '../../src/session/end-signals.ts'

const loadedOf = (key: string) => ({ key }) as LoadedSession
const turn = () => new Promise(setImmediate)

test('a failing store aborts no session signal and is reported once until it works again', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let isAway = true
  const reported: string[] = []
  const read = async () => {
    if (isAway) throw new Error('away')
    return undefined
  }
  const isCurrent = () => {
    if (isAway) throw new Error('away')
    return false
  }
  const signals = createEndSignals({ isCurrent, isAlive: isCurrent, get: read, getFresh: read }, code =>
    reported.push(code),
  )
  t.after(() => signals.stop())
  const all = Array.from({ length: 200 }, (_, n) => signals.signalFor(`ticket-${n}`, loadedOf(`key-${n}`)))
  for (let second = 0; second < 3; second++) {
    t.mock.timers.tick(1000)
    await turn()
  }
  assert.deepEqual([all.filter(({ aborted }) => aborted).length, reported], [0, ['streams_unchecked']])
  isAway = false
  t.mock.timers.tick(1000)
  await turn()
  assert.equal(all.filter(({ aborted }) => aborted).length, 200)
})

test('signals of 2,000 changed sessions are checked in one round, with at most 50 concurrent store reads', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const open = { now: 0, most: 0, all: 0 }
  const read = async () => {
    open.all++
    open.most = Math.max(open.most, ++open.now)
    await turn()
    open.now--
    return loadedOf('changed')
  }
  let isChanged = false
  const signals = createEndSignals(
    { isCurrent: () => !isChanged, isAlive: () => !isChanged, get: read, getFresh: read },
    () => {},
  )
  t.after(() => signals.stop())
  for (let n = 0; n < 2000; n++) signals.signalFor(`ticket-${n}`, loadedOf(`key-${n}`))
  isChanged = true
  t.mock.timers.tick(1000)
  for (let n = 0; n < 200 && open.all < 2000; n++) await turn()
  assert.deepEqual([open.all, open.most], [2000, 50])
})

test('hanging refreshes do not delay the signals of sessions that end, whether or not they are due for a refresh', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const ended = new Set<string>()
  let refreshes = 0
  const signals = createEndSignals(
    {
      isCurrent: () => false,
      isAlive: ({ key }) => !ended.has(key),
      get: async ticket => (ended.has(ticket) ? undefined : loadedOf(ticket)),
      getFresh() {
        refreshes++
        return new Promise(() => {})
      },
    },
    () => {},
  )
  t.after(() => signals.stop())
  const open = Array.from({ length: 200 }, (_, n) => signals.signalFor(`due-${n}`, loadedOf(`due-${n}`)))
  for (const signal of open) signal.addEventListener('abort', () => {})
  const unread = signals.signalFor('other', loadedOf('other'))
  const look = async () => {
    t.mock.timers.tick(1000)
    for (let n = 0; n < 20; n++) await turn()
  }
  await look()
  assert.equal(refreshes, 200)
  for (const key of ['due-0', 'due-199', 'other']) ended.add(key)
  await look()
  assert.deepEqual(
    [open[0], open[199], unread].map(signal => signal?.aborted),
    [true, true, true],
  )
  assert.deepEqual([open.filter(({ aborted }) => aborted).length, refreshes], [2, 200])
})
