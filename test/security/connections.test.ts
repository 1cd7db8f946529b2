// However a connection ends, the process does not, and whoever comes next is served.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzzConnections } from './fuzz-connections.ts'

test('the processes survive 1,000 half-sent, reset and mixed connections of every kind, and exit cleanly', async t => {
  const { done, counts, exits } = await fuzzConnections(t, { seed: 20260302, connections: 1000 })
  t.diagnostic(`${done} connections; ${JSON.stringify(counts)}`)
  assert.equal(done, 1000)
  for (const exit of exits) assert.deepEqual(exit, { code: 0, signal: null })
})
