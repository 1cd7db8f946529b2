// Whole sign-ins: GET /callback, the two calls to a provider that answers at once, and a session that would survive a
// crash where the store can promise that.

import { setTimeout as pause } from 'node:timers/promises'
import { contest, median } from './contest.ts'
import { startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { type Findings, whole } from './report.ts'
import { menshenOnEachStore } from './stores.ts'

const DAY_SECONDS = 86_400
const IN_FLIGHT_MS = 1000

export async function benchSignIns(bench: Bench): Promise<Findings> {
  const rows: string[][] = []
  await using provider = await startProvider(DAY_SECONDS)
  for await (const { name, menshen } of menshenOnEachStore(bench, provider)) {
    bench.say(`sign-ins on ${name}`)
    const url = `${menshen.url}/callback?code=user&state=bench_idp`
    const [rates] = await contest([{ url, lua: ['sign-in.lua'] }], bench.plan)
    rows.push([name, whole(median(rates))])
    await pause(IN_FLIGHT_MS) // the load has left in the midst of its last sign-ins
  }
  return { table: { title: 'Sign-ins', columns: ['store', 'sign-ins /s'], rows }, marks: [] }
}
