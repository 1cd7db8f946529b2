// Everybody's token is due in the same minute, as on the morning after everybody signed in at nine.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type Instance, isServed, type SignedInUser, setUpInstances, signedIn } from '../kit/instance.ts'

const SESSIONS = 10_000

for (const [WORKERS, atOnce] of [
  ['1', 50],
  ['2', 1000],
] as const)
  test(`${SESSIONS} sessions due in the same minute are refreshed once each and stay signed in (WORKERS=${WORKERS}, ${atOnce} at once)`, {
    timeout: 900_000,
  }, async t => {
    const { provider, start } = await setUpInstances(t, { WORKERS, LOG_LEVEL: 'warn' })
    const menshen = await start()
    provider.behaviour.expiresIn = 290
    const users: SignedInUser[] = []
    await inParallel(SESSIONS, 20, async () => void users.push(await signedIn(menshen, provider)))
    provider.behaviour.expiresIn = 7200

    const began = performance.now()
    const first = await visits(users, menshen, atOnce)
    const seconds = (performance.now() - began) / 1000
    const refreshes = provider.callsTo('refresh').length
    const second = await visits(users, menshen, 50)
    t.diagnostic(
      `${SESSIONS} due, ${atOnce} at once: ${refreshes} refreshes in ${seconds.toFixed(1)} s, ${SESSIONS - first} not served, ${SESSIONS - second} signed out, ${provider.reuses} reuses`,
    )
    const failures = menshen.lines.filter(({ event }) => event === 'session_refresh_failed')
    assert.deepEqual(failures.slice(0, 3), [])
    assert.deepEqual([first, second], [SESSIONS, SESSIONS])
    assert.equal(refreshes, SESSIONS)
    assert.equal(provider.callsTo('refresh').length, SESSIONS)
    assert.equal(provider.reuses, 0)
  })

/** How many are served. */
async function visits(users: readonly SignedInUser[], menshen: Instance, atOnce: number): Promise<number> {
  let served = 0
  await inParallel(users.length, atOnce, async n => {
    const page = await users[n]?.get(menshen).catch(() => undefined)
    if (page && isServed(page)) served += 1
  })
  return served
}

async function inParallel(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  const rest = Array(count).keys()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const n of rest) await work(n)
    }),
  )
}
