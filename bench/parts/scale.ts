// `npm run bench -- scale`: what larger installations need, simulated with the costs that were measured.

import type { Part } from '../part.ts'
import type { Table } from '../report/findings.ts'
import { hundredths, megabytes, milliseconds, percent, whole } from '../report/words.ts'
import { type Costs, readCosts } from '../scale/costs.ts'
import { ASSUMED, type Demand, type Installation, type Layout, plan, size } from '../scale/installation.ts'

const DEMANDS: readonly Demand[] = [
  { sessions: 1000, requests: 10 },
  { sessions: 100_000, requests: 1000 },
  { sessions: 1_000_000, requests: 10_000 },
  { sessions: 10_000_000, requests: 100_000 },
]
const LAYOUTS: readonly Layout[] = [
  'any process, one Redis',
  'the same process, one Redis',
  'any process, Redis Cluster',
]
/** In steps of a quarter, from a small installation to one larger than any. */
const STEP = 1.25
const MAX_REQUESTS = 10e6

export const scale: Part = {
  async run({ costs, say }) {
    const measured = readCosts(costs())
    say('simulating larger installations')
    return { tables: [...DEMANDS.map(demand => tableOf(demand, measured)), limits(measured)], marks: [] }
  },
}

function tableOf(demand: Demand, costs: Costs): Table {
  const all = LAYOUTS.map(layout => plan(demand, layout, costs))
  const row = (what: string, say: (one: Installation) => string) => [what, ...all.map(say)]
  return {
    title: `${whole(demand.sessions)} sessions, ${whole(demand.requests)} requests a second`,
    columns: ['', ...LAYOUTS],
    rows: [
      row('sign-ins /s', ({ signIns }) => rate(signIns)),
      row('refreshes /s', ({ refreshes }) => rate(refreshes)),
      row('processes', ({ processes }) => whole(processes)),
      row(`machines of ${ASSUMED.coresOfMachine} cores`, ({ processes }) => whole(machinesOf(processes))),
      row('a process is busy', ({ processBusy }) => percent(processBusy)),
      row('sessions found in its cache', ({ hits }) => percent(hits)),
      row('p50', ({ p50 }) => time(p50)),
      row('p99', ({ p99 }) => time(p99)),
      row('Redis primaries', ({ redisNodes }) => whole(redisNodes)),
      row('a Redis is busy', ({ redisBusy }) => (redisBusy >= 1 ? `**${percent(redisBusy)}**` : percent(redisBusy))),
      row('Redis commands /s', ({ redisCommands }) => whole(redisCommands)),
      row('Redis traffic', ({ redisBytes }) => `${hundredths((redisBytes * 8) / 1e9)} Gbit/s`),
      row('invalidations /s', ({ invalidations }) => whole(invalidations)),
      row('Redis memory, all in all', ({ redisMemory }) => megabytes(redisMemory)),
      row('memory of a process', ({ processMemory }) => megabytes(processMemory)),
    ],
  }
}

/** Menshen itself grows by adding machines; one Redis does not. */
function limits(costs: Costs): Table {
  const rows = LAYOUTS.slice(0, 2).map(layout => {
    let last: ReturnType<typeof size> | undefined
    for (let requests = 1000; requests < MAX_REQUESTS; requests *= STEP) {
      const next = size({ sessions: requests * 100, requests }, layout, costs)
      if (next.redisBusy > ASSUMED.mostBusy) break
      last = next
    }
    const { demand, processes = 0 } = last ?? {}
    const most = [demand?.requests ?? 0, demand?.sessions ?? 0, processes].map(whole)
    return [layout, ...most]
  })
  const columns = [`until Redis is busy for ${percent(ASSUMED.mostBusy)}`, 'requests /s', 'sessions', 'processes']
  return { title: 'How far one Redis goes', columns, rows }
}

function rate(perSecond: number): string {
  return perSecond < 10 ? hundredths(perSecond) : whole(perSecond)
}

function machinesOf(processes: number): number {
  return Math.ceil(processes / ASSUMED.coresOfMachine)
}

function time(seconds: number): string {
  return Number.isFinite(seconds) ? milliseconds(seconds * 1000) : 'grows without end'
}
