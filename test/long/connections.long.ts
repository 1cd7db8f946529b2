// The same connections for minutes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzzConnections } from '../security/fuzz-connections.ts'

const CONNECTIONS = 20_000

test('20,000 half-sent, reset and mixed connections of every kind crash no process', { timeout: 900_000 }, async t => {
  const { done, counts, exits } = await fuzzConnections(t, { seed: 1, connections: CONNECTIONS })
  t.diagnostic(`${done} connections; ${JSON.stringify(counts)}`)
  assert.equal(done, CONNECTIONS)
  for (const exit of exits) assert.deepEqual(exit, { code: 0, signal: null })
})
