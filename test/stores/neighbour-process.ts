// A second process on the file of an embedded store: does the calls that it is sent, all at once, and answers with
// their outcomes.

import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Calls, Order, Outcome } from './neighbour.ts'

const store = await openSqliteStore({ file: process.argv[2] ?? '', now: Date.now })
process.send?.('ready')

process.on('message', async ({ id, calls, thenDie }: Order) => {
  const outcomes = await Promise.all(calls.map(outcomeOf))
  if (thenDie) process.kill(process.pid, 'SIGKILL')
  process.send?.({ id, outcomes })
})
process.on('disconnect', () => store.close())

async function outcomeOf([verb, ...args]: Calls[number]): Promise<Outcome> {
  const call = Reflect.get(verb.startsWith('trail.') ? store.trail : store, verb.replace('trail.', ''))
  return Promise.resolve(call(...args)).then(
    result => ({ result }),
    error => ({ error: error.code ?? String(error) }),
  )
}
