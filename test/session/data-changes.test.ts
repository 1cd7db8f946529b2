// Changes of a session's data at the same time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadedSession } from '../../src/session/cache.ts'
import { createDataChanges } from '../../src/session/data-changes.ts'

const loadedOf = (key: string) => ({ key }) as LoadedSession

/** Changes whose writes last until the test resolves them. */
function createHeldChanges() {
  const written: string[] = []
  const held: PromiseWithResolvers<LoadedSession | undefined>[] = []
  const change = createDataChanges((_ticket, { key }, data) => {
    written.push(`${key} ${data.n}`)
    const result = Promise.withResolvers<LoadedSession | undefined>()
    held.push(result)
    return result.promise
  })
  const turn = () => new Promise(setImmediate)
  return { written, held, turn, change: (key: string, n: number) => change(`ticket of ${key}`, loadedOf(key), { n }) }
}

test('a thousand concurrent data changes of one session cause two writes, and the last change wins', async () => {
  const { written, held, turn, change } = createHeldChanges()
  const changes = Array.from({ length: 1000 }, (_, n) => change('a', n))
  await turn()
  assert.deepEqual(written, ['a 0'])
  held[0]?.resolve(loadedOf('a'))
  await turn()
  assert.deepEqual(written, ['a 0', 'a 999'])
  held[1]?.resolve(loadedOf('a'))
  await Promise.all(changes)
  void change('a', 1000)
  assert.deepEqual(written, ['a 0', 'a 999', 'a 1000'])
})

test('a data change of one session does not wait for a change of another session', () => {
  const { written, change } = createHeldChanges()
  for (const key of ['a', 'b']) void change(key, 1)
  assert.deepEqual(written, ['a 1', 'b 1'])
})

test('a data change that fails or finds the session ended reports this to its callers, and the next one is written', async () => {
  const { written, held, turn, change } = createHeldChanges()
  const [failing, joined, ended] = [change('a', 1), change('a', 2), change('a', 3)]
  held[0]?.reject(new Error('away'))
  await assert.rejects(failing, /away/)
  await turn()
  held[1]?.resolve(undefined)
  assert.deepEqual(await Promise.all([joined, ended]), [undefined, undefined])
  void change('a', 4)
  assert.deepEqual(written, ['a 1', 'a 3', 'a 4'])
})
