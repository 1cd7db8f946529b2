// The limit of entries that repeat.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createHandoffLimit } from '../../src/hosts/handoff.ts'

const HOUR = 3_600_000

test('a page of a host can be entered five times in ten seconds, and the ten seconds end if the clock is set back', () => {
  const clock = { now: 10 * HOUR }
  const mayHandOff = createHandoffLimit(() => clock.now)
  const enter = () => mayHandOff('session', 'https://wiki.example/page')
  for (let n = 0; n < 5; n++) assert.ok(enter())
  assert.ok(!enter())
  clock.now -= HOUR
  assert.ok(enter())
})
