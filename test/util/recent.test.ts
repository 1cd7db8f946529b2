// A bounded cache of recent results.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createRecent, memoize } from '../../src/util/recent.ts'

test('recently used entries are found, and the cache never keeps more than its limit', () => {
  const cache = createRecent<number>(10)
  for (let n = 0; n < 1000; n++) {
    cache.set(`key ${n}`, n)
    assert.equal(cache.get('key 0'), 0, 'it is asked for again and again')
    for (let latest = Math.max(0, n - 3); latest <= n; latest++) assert.equal(cache.get(`key ${latest}`), latest)
  }
  const found = Array.from({ length: 1000 }, (_, n) => n).filter(n => cache.get(`key ${n}`) !== undefined)
  assert.ok(found.length <= 10, `${found.length} were kept`)
})

test('a value that is set again replaces the first one', () => {
  const cache = createRecent<string>(4)
  cache.set('path', 'first')
  for (const other of ['a', 'b']) cache.set(other, other)
  cache.set('path', 'second')
  assert.equal(cache.get('path'), 'second')
})

test('a memoized function computes each recent result once and computes evicted ones again', () => {
  const computed: string[] = []
  const upperCase = memoize(4, text => {
    computed.push(text)
    return text.toUpperCase()
  })
  assert.deepEqual(['a', 'a', '', 'a'].map(upperCase), ['A', 'A', '', 'A'])
  assert.deepEqual(computed, ['a', ''])
  for (let n = 0; n < 8; n++) upperCase(String(n))
  assert.equal(upperCase('a'), 'A')
  assert.equal(computed.filter(text => text === 'a').length, 2)
})
