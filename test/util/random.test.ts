import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pooledRandom } from '../../src/util/random.ts'

test('no bytes are given twice, and what was given does not change', () => {
  const given = Array.from({ length: 2000 }, () => pooledRandom(12))
  const texts = given.map(bytes => bytes.toString('hex'))
  assert.equal(new Set(texts).size, given.length)
  for (let n = 0; n < 500; n++) assert.equal(pooledRandom(32).length, 32)
  assert.deepEqual(
    given.map(bytes => bytes.toString('hex')),
    texts,
  )
})
