// The sorted list of the memory store, beside a plain array that is sorted anew each time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SortedList } from '../../src/stores/ordering.ts'

const byValue = (one: number, other: number) => one - other

/** The same numbers in every run. */
function* numbers(count: number, below: number): Generator<number> {
  let state = 1
  for (let n = 0; n < count; n++) {
    state = (state * 48_271) % 2_147_483_647
    yield state % below
  }
}

test('after many adds and removes, SortedList has the same items in the same order as a sorted array', () => {
  const list = new SortedList(byValue)
  const items = new Set<number>()
  let step = 0
  for (const number of numbers(20_000, 5000)) {
    if (step++ % 3 === 2) {
      list.remove(number)
      items.delete(number)
    } else {
      list.add(number)
      items.add(number)
    }
  }
  const sorted = [...items].sort(byValue)
  assert.equal(list.size, sorted.length)
  assert.deepEqual([...list.ascending()], sorted)
  assert.deepEqual([...list.descending()], sorted.toReversed())
  for (const edge of [-1, 0, 1, 2500, 4999, 5000, ...sorted.slice(0, 600)]) {
    assert.equal([...list.ascending(edge)].length, sorted.filter(item => item > edge).length, `behind ${edge}`)
    assert.equal([...list.descending(edge)].length, sorted.filter(item => item < edge).length, `before ${edge}`)
  }
  for (const item of sorted) list.remove(item)
  assert.deepEqual([...list.ascending()], [])
  assert.equal(list.size, 0)
})
