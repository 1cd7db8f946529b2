// A refresh storm: many sessions whose tokens are all due in the same minute, and all of their users come at once, each
// with two requests. The provider ends whoever refreshes twice with one token.

import { performance } from 'node:perf_hooks'
import { ask } from './answer.ts'
import { inParallel } from './in-parallel.ts'
import { signIn, startMenshen, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import type { Served } from './processes.ts'
import { type Findings, whole } from './report.ts'
import { openLmdb } from './stores.ts'
import { userNumber } from './users.ts'

/** Less than the refresh lead, so that it is due at once, and more than this takes. */
const SHORT_SECONDS = 290
const USERS_AT_ONCE = 200

export async function benchStorm({ plan, cores, say }: Bench): Promise<Findings> {
  await using provider = await startProvider(SHORT_SECONDS)
  await using store = await openLmdb()
  await using menshen = await startMenshen(store.address, provider, cores)
  const cookies: string[] = []

  say(`a storm of ${whole(plan.stormSessions)} sessions`)
  await inParallel(Array(plan.stormSessions).keys(), USERS_AT_ONCE, async number => {
    cookies.push(await signIn(menshen, userNumber(number)))
  })
  const storm = await visitAll(menshen, cookies)
  const refreshes = await refreshesOf(provider)
  const after = await visitAll(menshen, cookies)
  const again = (await refreshesOf(provider)) - refreshes

  const failed = storm.failed + after.failed
  const signedOut = Math.max(storm.signedOut, after.signedOut)
  const figures = [cookies.length, refreshes, again, failed, signedOut].map(whole)
  return {
    table: {
      title: 'A refresh storm, on lmdb',
      columns: ['sessions', 'refreshes', 'afterwards', 'failures', 'sign-outs', 'time', 'refreshes /s'],
      rows: [[...figures, `${storm.seconds.toFixed(1)} s`, whole(refreshes / storm.seconds)]],
    },
    marks: [
      {
        what: 'refresh storm',
        demanded: 'one refresh a session, nobody signed out',
        measured: `${whole(refreshes + again)} for ${whole(cookies.length)}, ${whole(signedOut)} signed out`,
        met: refreshes === cookies.length && again === 0 && failed === 0 && signedOut === 0,
      },
    ],
  }
}

async function visitAll({ url }: Served, cookies: readonly string[]) {
  const startedAt = performance.now()
  let failed = 0
  let signedOut = 0
  await inParallel(cookies, USERS_AT_ONCE, async cookie => {
    const visit = () => ask(`${url}/_menshen/check`, cookie).catch(() => ({ status: 0 }))
    const answers = await Promise.all([visit(), visit()])
    if (answers.some(({ status }) => status === 401)) signedOut++
    else if (answers.some(({ status }) => status !== 200)) failed++
  })
  return { failed, signedOut, seconds: (performance.now() - startedAt) / 1000 }
}

async function refreshesOf({ url }: Served): Promise<number> {
  const { body } = await ask(`${url}/refreshes`)
  return JSON.parse(body.toString()).refreshes
}
