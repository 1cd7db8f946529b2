// kill -9, a hundred times, while users sign in and out.

import assert from 'node:assert/strict'
import test from 'node:test'
import { signInUnderKills } from '../faults/kills.ts'

const KILLS = 100

test(`${KILLS} runs of kill -9 lose no completed sign-in and restore no session that was signed out`, {
  timeout: 900_000,
}, async t => {
  const { signIns, signOuts, startsMs } = await signInUnderKills(t, KILLS)
  assert.equal(startsMs.length, KILLS)
  const median = startsMs[KILLS / 2]
  t.diagnostic(
    `${KILLS} kills: ${signIns} signed in, 0 lost, ${signOuts} signed out, 0 back, ready after ${median} ms, at most ${startsMs.at(-1)} ms`,
  )
})
