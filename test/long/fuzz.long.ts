// The same fuzzer for minutes, with several seeds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzz } from '../security/fuzz.ts'

const SEEDS = [1, 2, 3, 4, 5, 6]
const MEMORY_LIMIT_MB = 150

test('60,000 random and malformed requests crash nothing, bypass nothing and leak no memory', {
  timeout: 1_800_000,
}, async t => {
  const result = await fuzz(t, { seeds: SEEDS, requests: 10_000 })
  const { violations, sent, hits, ended, counts, seconds, rssBefore, rssAfterSeeds } = result
  const rssAfter = rssAfterSeeds.at(-1) ?? 0
  t.diagnostic(
    `${sent} requests in ${seconds.toFixed(0)} s, ${hits} reached the application; ${JSON.stringify(counts)}`,
  )
  t.diagnostic(`memory ${rssBefore} MB before, after each seed ${rssAfterSeeds.join(', ')} MB`)
  assert.deepEqual(violations, [])
  assert.ok(!ended, 'the process ended')
  assert.ok(sent >= 60_000, `only ${sent} were sent`)
  assert.ok(rssAfter - rssBefore < MEMORY_LIMIT_MB, `${rssAfter - rssBefore} MB more`)
})
