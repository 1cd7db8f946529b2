// Whatever is sent, the gateway stays up, answers in HTTP, and lets nobody in who has not signed in.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzz } from './fuzz.ts'

test('1,500 random and damaged requests cause no error and gain no unauthorized access', async t => {
  const { violations, sent, hits, ended, counts } = await fuzz(t, {
    seeds: [20260301],
    requests: 1500,
  })
  t.diagnostic(`${sent} requests, ${hits} reached the application; ${JSON.stringify(counts)}`)
  assert.deepEqual(violations, [])
  assert.ok(!ended, 'the process ended')
  assert.ok(sent >= 1500, `only ${sent} were sent`)
  // A fuzzer that never gets through proves nothing.
  assert.ok(hits > 50, `only ${hits} reached the application`)
  for (const status of [200, 302, 400, 401, 403, 404, 405])
    assert.ok(counts[status], `no ${status}: ${JSON.stringify(counts)}`)
})
