// What other users notice while many expired sessions are swept.

import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { steadyLatency } from '../measure/latency.ts'
import type { Part } from '../part.ts'
import { belowMark, milliseconds, whole } from '../report/words.ts'
import { watchExpired } from '../servers/expired-sessions.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { preload } from '../servers/preloaded.ts'
import { folder } from '../servers/processes.ts'

const AN_HOUR_AGO = -3600
const MAX_MS = 10
const QUIET_MS = 5000
const LONGEST_MS = 60_000
const LOOK_EVERY_MS = 200

export const sweep: Part = {
  async run({ plan, cores, say }) {
    const directory = join(folder, 'sweep')
    say(`making ${whole(plan.expiredSessions)} expired sessions`)
    const cookies = await preload(cores, { directory, sessions: plan.visitors })
    await preload(cores, { directory, sessions: plan.expiredSessions, lifeSeconds: AN_HOUR_AGO })
    await using provider = await startProvider()
    await using expired = watchExpired(directory)
    const before = expired.count()
    await using menshen = await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores)
    const check = `${menshen.url}/_menshen/check`

    const startedAt = performance.now()
    const elapsed = () => performance.now() - startedAt
    // Just after a start everything takes longer, whatever is swept.
    await steadyLatency(check, cookies, () => elapsed() > plan.warmUpSeconds * 2000)
    say('requests while they are swept')
    let left = before
    const timer = setInterval(() => {
      left = expired.count()
    }, LOOK_EVERY_MS)
    const during = await steadyLatency(check, cookies, () => left === 0 || elapsed() > LONGEST_MS).finally(() =>
      clearInterval(timer),
    )
    const seconds = elapsed() / 1000
    const swept = before - left
    say('requests after it')
    const until = elapsed() + QUIET_MS
    const after = await steadyLatency(check, cookies, () => elapsed() > until)

    const row = (when: string, { requests, p50, p99 }: typeof after) => [
      when,
      whole(requests),
      milliseconds(p50),
      milliseconds(p99),
    ]
    return {
      tables: [
        {
          title: `${whole(swept)} expired sessions swept in ${seconds.toFixed(0)} s, on sqlite`,
          columns: ['other users', 'requests', 'p50', 'p99'],
          rows: [row('while it happens', during), row('afterwards', after)],
        },
      ],
      marks: [
        belowMark(
          `p99 of other users while ${whole(before)} expired sessions are swept`,
          swept === before ? during.p99 : Number.NaN,
          MAX_MS,
          milliseconds,
        ),
      ],
    }
  },
}
