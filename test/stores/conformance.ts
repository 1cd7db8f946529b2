// The contract of a store as a list of sentences. Every store runs them.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Entry, ListQuery, Page, Store, StoredEntry } from '../../src/stores/store.ts'
import { newestConformance } from './newest-conformance.ts'
import { trailConformance } from './trail-conformance.ts'

export interface OpenedStore {
  readonly store: Store
  readonly now: () => number
  /** Resolves when the clock of the store is `ms` later; where that clock is real, by waiting. */
  readonly passTime: (ms: number) => Promise<void>
  readonly close: () => Promise<void>
}

const SOON_MS = 50

export function conformance(name: string, open: () => Promise<OpenedStore>): void {
  newestConformance(name, open)
  trailConformance(name, open)
  describe(`${name} meets the store contract:`, () => {
    let opened: OpenedStore
    let store: Store
    beforeEach(async () => {
      opened = await open()
      store = opened.store
    })
    afterEach(() => opened.close())

    const entry = (text: string, labels: readonly string[] = []): Entry => ({
      value: bytes(text),
      expiresAt: opened.now() + 60_000,
      labels,
    })
    const shortLived = (text: string, labels: readonly string[] = []): Entry => ({
      ...entry(text, labels),
      expiresAt: opened.now() + SOON_MS,
    })
    const stored = async (key: string): Promise<StoredEntry> => {
      const found = await store.read(key)
      assert.ok(found, `${key} is there`)
      return found
    }

    test('a created entry is read with its key, value, expiry, labels and version', async () => {
      const kept = entry('a', ['user:1', 'session'])
      const version = await store.create('k', kept)
      const found = await stored('k')
      assert.deepEqual(await store.readLatest('k'), found)
      assert.equal(text(found), 'a')
      assert.equal(found.expiresAt, kept.expiresAt)
      assert.deepEqual(found.labels, ['user:1', 'session'])
      assert.equal(found.key, 'k')
      assert.ok(Number.isSafeInteger(found.version))
      assert.equal(found.version, version)
    })

    test('readSync, if the store has it, returns the same entry as read', async t => {
      if (!store.readSync) return t.skip('it cannot')
      assert.equal(store.readSync('k'), undefined)
      await store.create('k', shortLived('a', ['session']))
      const { key, version, expiresAt, value } = await stored('k')
      const first = store.readSync('k')
      assert.deepEqual([first?.key, first?.version, first?.expiresAt], [key, version, expiresAt])
      assert.deepEqual(Buffer.from(first?.value ?? []), Buffer.from(value))
      await store.replace('k', shortLived('b'), version)
      assert.equal(Buffer.from(store.readSync('k')?.value ?? []).toString(), 'b')
      await opened.passTime(SOON_MS)
      assert.equal(store.readSync('k'), undefined)
      await store.create('l', entry('c'))
      await store.remove('l')
      assert.equal(store.readSync('l'), undefined)
    })

    test('an absent key reads as undefined, is not current, and cannot be removed, taken or replaced', async () => {
      assert.equal(await store.read('none'), undefined)
      assert.equal(await store.readLatest('none'), undefined)
      assert.equal(await store.isCurrent('none', 1), false)
      assert.equal(await store.remove('none'), false)
      assert.equal(await store.take('none'), undefined)
      assert.equal(await store.replace('none', entry('a'), 1), undefined)
      assert.equal(await store.read('none'), undefined)
    })

    test('creating an existing key returns undefined and changes nothing', async () => {
      await store.create('k', entry('first', ['one']))
      const { version } = await stored('k')
      assert.equal(await store.create('k', entry('second', ['two'])), undefined)
      assert.equal(text(await stored('k')), 'first')
      assert.equal(await store.isCurrent('k', version), true)
      assert.deepEqual(await keysOf(store, 'two'), [])
    })

    test('a replacement has a new value, new labels and a new version', async () => {
      await store.create('k', entry('old', ['both', 'before']))
      const { version } = await stored('k')
      const next = await store.replace('k', entry('new', ['both', 'since']), version)
      const now = await stored('k')
      assert.equal(now.version, next)
      assert.equal(text(now), 'new')
      assert.notEqual(now.version, version)
      assert.equal(await store.isCurrent('k', version), false)
      assert.equal(await store.isCurrent('k', now.version), true)
      assert.deepEqual(await keysOf(store, 'before'), [])
      assert.deepEqual(await keysOf(store, 'since'), ['k'])
      assert.deepEqual(await keysOf(store, 'both'), ['k'])
    })

    test('replacing an outdated version returns undefined and changes nothing', async () => {
      await store.create('k', entry('1'))
      const { version } = await stored('k')
      await store.replace('k', entry('2'), version)
      assert.equal(await store.replace('k', entry('3', ['late']), version), undefined)
      assert.equal(text(await stored('k')), '2')
      assert.deepEqual(await keysOf(store, 'late'), [])
    })

    test('a removed entry is gone, and removing it again returns false', async () => {
      await store.create('k', entry('a', ['label']))
      const { version } = await stored('k')
      assert.equal(await store.remove('k'), true)
      assert.equal(await store.read('k'), undefined)
      assert.equal(await store.isCurrent('k', version), false)
      assert.deepEqual(await keysOf(store, 'label'), [])
      assert.equal(await store.remove('k'), false)
    })

    test('take returns the complete entry and removes it', async () => {
      const kept = entry('a', ['label'])
      await store.create('k', kept)
      const taken = await store.take('k')
      assert.ok(taken)
      assert.equal(text(taken), 'a')
      assert.equal(taken.expiresAt, kept.expiresAt)
      assert.deepEqual(taken.labels, ['label'])
      assert.equal(await store.read('k'), undefined)
      assert.deepEqual(await keysOf(store, 'label'), [])
    })

    test('a version is never reused, even if the key is removed and created again', async () => {
      const seen = new Set<number>()
      for (let round = 0; round < 20; round++) {
        await store.create('k', entry('same'))
        const { version } = await stored('k')
        seen.add(version)
        await store.replace('k', entry('same'), version)
        seen.add((await stored('k')).version)
        await store.remove('k')
      }
      assert.equal(seen.size, 40)
    })

    for (const [what, value] of [
      ['an empty value', new Uint8Array()],
      ['a value of 1 MiB', new Uint8Array(randomBytes(1024 * 1024))],
    ] as const) {
      test(`${what} is returned unchanged`, async () => {
        await store.create('k', { ...entry('', ['label']), value })
        const found = await stored('k')
        assert.ok(Buffer.from(value).equals(found.value))
        assert.equal(await store.isCurrent('k', found.version), true)
        assert.ok(
          Buffer.from(value).equals(
            (await store.list({ label: 'label', limit: 1 })).entries[0]?.value ?? bytes('absent'),
          ),
        )
        assert.ok(Buffer.from(value).equals((await store.take('k'))?.value ?? bytes('absent')))
      })
    }

    test('changing the bytes that were given or read does not change the stored entry', async () => {
      const given = entry('safe')
      const creating = store.create('k', given)
      given.value.fill(0)
      await creating
      const found = await stored('k')
      await store.create('other', entry('x'.repeat(1000)))
      await stored('other')
      assert.equal(text(found), 'safe')
      found.value.fill(0)
      assert.equal(text(await stored('k')), 'safe')
    })

    test('of 50 parallel creates, one wins, and its entry is the one that is read', async () => {
      const won = await Promise.all(fifty(i => store.create('k', entry(`${i}`))))
      assert.equal(won.filter(Boolean).length, 1)
      assert.equal(text(await stored('k')), `${won.findIndex(Boolean)}`)
    })

    test('of 50 parallel replaces of one version, one wins, and its entry is the one that is read', async () => {
      await store.create('k', entry('first'))
      const { version } = await stored('k')
      const won = await Promise.all(fifty(i => store.replace('k', entry(`${i}`), version)))
      assert.equal(won.filter(Boolean).length, 1)
      assert.equal(text(await stored('k')), `${won.findIndex(Boolean)}`)
    })

    test('of 50 parallel takes, one gets the entry', async () => {
      await store.create('k', entry('a'))
      const taken = await Promise.all(fifty(() => store.take('k')))
      assert.equal(taken.filter(Boolean).length, 1)
    })

    test('of 50 parallel removes, one returns true', async () => {
      await store.create('k', entry('a'))
      const removed = await Promise.all(fifty(() => store.remove('k')))
      assert.equal(removed.filter(Boolean).length, 1)
    })

    test('a remove during concurrent replaces wins, and the entry stays removed', async () => {
      await store.create('k', entry('0', ['label']))
      const refresh = async () => {
        for (let found = await store.read('k'); found; found = await store.read('k')) {
          await store.replace('k', entry('again', ['label']), found.version)
        }
      }
      const refreshes = [refresh(), refresh(), refresh()]
      assert.equal(await store.remove('k'), true)
      assert.equal(await store.read('k'), undefined)
      await Promise.all(refreshes)
      assert.equal(await store.read('k'), undefined)
      assert.deepEqual(await keysOf(store, 'label'), [])
    })

    test('pages are ordered by key, and the last one has no next', async () => {
      const keys = await createTen()
      const pages = (limit: number) => pagesOf(store, { label: 'all', limit })
      assert.deepEqual(await pages(4), [keys.slice(0, 4), keys.slice(4, 8), keys.slice(8)])
      assert.deepEqual(await pages(5), [keys.slice(0, 5), keys.slice(5)])
      assert.deepEqual(await pages(100), [keys])
    })

    test('pages have only the entries with the requested label', async () => {
      const keys = await createTen()
      await store.create('session:without', entry('a'))
      const odd = keys.filter((_, i) => i % 2 === 1)
      const pages = await pagesOf(store, { label: 'odd', limit: 2 })
      assert.deepEqual(pages, [odd.slice(0, 2), odd.slice(2, 4), odd.slice(4)])
      assert.deepEqual(await keysOf(store, 'all'), keys)
      assert.deepEqual(await pagesOf(store, { label: 'od', limit: 100 }), [[]])
    })

    test('a label can have any length and any characters', async () => {
      const labels = ['', '用户:张三', 'with space\0and null', 'x'.repeat(10_000)]
      await store.create('k', entry('a', labels))
      for (const label of labels) assert.deepEqual(await keysOf(store, label), ['k'])
      assert.deepEqual((await stored('k')).labels, labels)
    })

    test('paging continues from the same position if entries are removed in between', async () => {
      const keys = await createTen()
      const query = { label: 'all', limit: 4 }
      const first = await store.list(query)
      await store.remove(keys[3] ?? '')
      await store.remove(keys[5] ?? '')
      assert.ok(first.next)
      const second = await store.list({ ...query, after: first.next })
      const rest = [keys[4], keys[6], keys[7], keys[8]]
      assert.deepEqual(keysIn(second), rest)
    })

    test('a page can start after any text, even one that is too long for a key', async () => {
      await createTen()
      for (const [after, rest] of Object.entries({ a: 10, 'session:8': 1, ['x'.repeat(5000)]: 0, 门: 0 }))
        assert.equal((await store.list({ label: 'all', after, limit: 10 })).entries.length, rest)
    })

    test('a listed entry is as complete as one that was read', async () => {
      await store.create('k', entry('a', ['label']))
      assert.deepEqual((await store.list({ label: 'label', limit: 1 })).entries, [await stored('k')])
    })

    test('an expired entry cannot be read, listed, replaced, taken or removed', async () => {
      await store.create('k', shortLived('a', ['label']))
      await store.create('stays', entry('b', ['label']))
      const { version } = await stored('k')
      await opened.passTime(SOON_MS)
      assert.equal(await store.read('k'), undefined)
      assert.equal(await store.readLatest('k'), undefined)
      assert.equal(await store.isCurrent('k', version), false)
      assert.equal(await store.replace('k', entry('again'), version), undefined)
      assert.deepEqual(await pagesOf(store, { label: 'label', limit: 1 }), [['stays']])
      assert.equal(await store.take('k'), undefined)
      assert.equal(await store.remove('k'), false)
    })

    test('an entry created with an expiry in the past is absent', async () => {
      await store.create('k', { ...entry('a', ['label']), expiresAt: opened.now() - 1 })
      assert.equal(await store.read('k'), undefined)
      assert.deepEqual(await keysOf(store, 'label'), [])
    })

    test('the key of an expired entry can be created again, with another version and without the old labels', async () => {
      await store.create('k', shortLived('old', ['before']))
      const { version } = await stored('k')
      await opened.passTime(SOON_MS)
      const won = await Promise.all(fifty(() => store.create('k', entry('new', ['since']))))
      assert.equal(won.filter(Boolean).length, 1)
      const now = await stored('k')
      assert.equal(text(now), 'new')
      assert.notEqual(now.version, version)
      assert.deepEqual(await keysOf(store, 'before'), [])
      assert.deepEqual(await keysOf(store, 'since'), ['k'])
    })

    test('a replacement expires at its own time, not at that of the replaced entry', async () => {
      await store.create('longer', shortLived('a', ['label']))
      await store.create('shorter', entry('a', ['label']))
      await store.replace('longer', entry('b', ['label']), (await stored('longer')).version)
      await store.replace('shorter', shortLived('b', ['label']), (await stored('shorter')).version)
      await opened.passTime(SOON_MS)
      assert.deepEqual(await keysOf(store, 'label'), ['longer'])
    })

    test('ready resolves on a working store', () => store.ready())

    async function createTen(): Promise<string[]> {
      const keys = Array.from({ length: 10 }, (_, i) => `session:${i}`)
      const created = keys.map((key, i) => store.create(key, entry(key, i % 2 === 1 ? ['all', 'odd'] : ['all'])))
      await Promise.all(created)
      return keys
    }
  })
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function text({ value }: Entry): string {
  return new TextDecoder().decode(value)
}

function fifty<Result>(call: (i: number) => Result): Result[] {
  return Array.from({ length: 50 }, (_, i) => call(i))
}

function keysIn({ entries }: Page): string[] {
  return entries.map(({ key }) => key)
}

async function pagesOf(store: Store, query: ListQuery): Promise<string[][]> {
  const pages: string[][] = []
  let after: string | undefined
  do {
    const page = await store.list(after === undefined ? query : { ...query, after })
    pages.push(keysIn(page))
    after = page.next
  } while (after !== undefined)
  return pages
}

async function keysOf(store: Store, label: string): Promise<string[]> {
  return (await pagesOf(store, { label, limit: 100 })).flat()
}
