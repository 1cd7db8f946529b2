// Listings are read to their last page.

import assert from 'node:assert/strict'
import test from 'node:test'
import { allEntries, allPages } from '../../src/stores/pages.ts'
import type { ListQuery, StoredEntry } from '../../src/stores/store.ts'

const entry = (key: string): StoredEntry => ({ key, value: new Uint8Array(), expiresAt: 1, labels: ['l'], version: 1 })

test('allEntries finds all entries with a label, even those after an empty page', async () => {
  const asked: ListQuery[] = []
  const pages = [
    { entries: [entry('a'), entry('b')], next: 'b' },
    { entries: [], next: 'm' },
    { entries: [entry('z')] },
  ]
  const store = {
    async list(query: ListQuery) {
      asked.push(query)
      return pages[asked.length - 1] ?? { entries: [] }
    },
  }
  assert.deepEqual(
    (await allEntries(store, 'l')).map(({ key }) => key),
    ['a', 'b', 'z'],
  )
  assert.deepEqual(
    asked.map(({ label, after }) => [label, after]),
    [
      ['l', undefined],
      ['l', 'b'],
      ['l', 'm'],
    ],
  )
})

test('allPages reads a page only when the caller asks for it', async () => {
  let read = 0
  for await (const page of allPages(async () => ({ next: String(++read) }))) if (page.next === '3') break
  assert.equal(read, 3)
})
