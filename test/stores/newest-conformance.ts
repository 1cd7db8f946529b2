// How a store counts and lists the newest, as a list of sentences. Every store runs them.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Entry, Store } from '../../src/stores/store.ts'
import type { OpenedStore } from './conformance.ts'

const SOON_MS = 50

export function newestConformance(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} lists its newest entries:`, () => {
    let opened: OpenedStore
    let store: Store
    beforeEach(async () => {
      opened = await open()
      store = opened.store
    })
    afterEach(() => opened.close())

    const entry = (since?: number, livesMs = 60_000): Entry => ({
      value: new Uint8Array(1),
      expiresAt: opened.now() + livesMs,
      labels: ['label'],
      ...(since === undefined ? {} : { since }),
    })
    const replace = async (key: string, next: Entry) => {
      const found = await store.read(key)
      return found !== undefined && store.replace(key, next, found.version)
    }

    test('entries with since are listed newest first, ties in reverse key order, and other entries are left out', async () => {
      const times = { a: 5, b: 10_000, c: 1_700_000_000_000, d: 5, e: 0 }
      await Promise.all(Object.entries(times).map(([key, since]) => store.create(key, entry(since))))
      await store.create('without', entry())
      assert.deepEqual(await pagesOf(store, 100), ['cbdae'])
      assert.deepEqual(await pagesOf(store, 2), ['cb', 'da', 'e'])
      assert.deepEqual(await pagesOf(store, 5), ['cbdae'])
      assert.equal(await store.count(), 5)
    })

    test('an entry listed by newest is as complete as one that was read', async () => {
      await store.create('k', entry(7))
      const found = await store.read('k')
      assert.equal(found?.since, 7)
      assert.deepEqual((await store.newest({ limit: 1 })).entries, [found])
      assert.deepEqual((await store.list({ label: 'label', limit: 1 })).entries, [found])
      assert.equal((await store.take('k'))?.since, 7)
      await store.create('without', entry())
      assert.ok(!Object.hasOwn((await store.read('without')) ?? { since: 0 }, 'since'))
    })

    test('a replacement is listed by its own since, and not at all without one', async () => {
      for (const [key, since] of Object.entries({ a: 1, b: 2, c: 3 })) await store.create(key, entry(since))
      await store.create('d', entry())
      assert.ok(await replace('a', entry(4)))
      assert.ok(await replace('b', entry()))
      assert.ok(await replace('c', entry(3, 90_000)))
      assert.ok(await replace('d', entry(2)))
      assert.deepEqual(await pagesOf(store, 10), ['acd'])
      assert.equal(await store.count(), 3)
    })

    test('removed, taken and expired entries are not listed, and soon no longer counted', async () => {
      for (const key of 'abcd') await store.create(key, entry(key.charCodeAt(0)))
      await store.create('e', entry(200, SOON_MS))
      assert.equal(await store.count(), 5)
      await store.remove('a')
      await store.take('c')
      assert.deepEqual(await pagesOf(store, 10), ['edb'])
      await opened.passTime(SOON_MS)
      assert.deepEqual(await pagesOf(store, 1), ['d', 'b'])
      await opened.passTime(1)
      while ((await store.count()) > 2) {
        await store.create(`another${Math.random()}`, entry())
        await pause(10)
      }
      assert.equal(await store.count(), 2)
    })

    test('a refused create adds no entry, and a refused replacement leaves the entry in its position', async () => {
      await store.create('a', entry(1))
      assert.equal(await store.create('a', entry(2)), undefined)
      assert.equal(await store.replace('a', entry(3), 1), undefined)
      assert.deepEqual(await pagesOf(store, 10), ['a'])
      assert.deepEqual((await store.newest({ limit: 1 })).entries[0]?.since, 1)
      while ((await store.count()) > 1) await pause(10)
    })

    test('paging continues from the same position if entries are added or removed in between', async () => {
      for (const [n, key] of [...'abcdef'].entries()) await store.create(key, entry(n))
      const { next } = await store.newest({ limit: 2 })
      assert.ok(next)
      await store.remove('e')
      await store.remove('d')
      await store.create('g', entry(9))
      const { entries } = await store.newest({ before: next, limit: 10 })
      assert.equal(entries.map(({ key }) => key).join(''), 'cba')
    })

    test('a `before` that is not a `next` is ignored', async () => {
      await store.create('a', entry(1))
      for (const before of ['', 'a', ':', '1:', ':a', '-1:a', '1e5:a', '9'.repeat(5000), `1:${'a'.repeat(5000)}`])
        assert.equal((await store.newest({ before, limit: 10 })).entries.length, 1, before)
    })
  })
}

async function pagesOf(store: Store, limit: number): Promise<string[]> {
  const pages: string[] = []
  let before: string | undefined
  do {
    const page = await store.newest(before === undefined ? { limit } : { before, limit })
    pages.push(page.entries.map(({ key }) => key).join(''))
    before = page.next
  } while (before !== undefined)
  return pages
}
