// Pages through the gateway, signed in, against what only forwards: the same undici bare, and Caddy.

import { isDeepStrictEqual } from 'node:util'
import { askAs } from '../measure/answer.ts'
import { compare, contest } from '../measure/contest.ts'
import { firstEventDelay } from '../measure/first-event.ts'
import { requestOf, requestsOf } from '../measure/requests.ts'
import type { Bench, Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { COMPARISON_COLUMNS, comparisonCells, milliseconds, shareMark } from '../report/words.ts'
import { startCaddy } from '../servers/caddy.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { type Served, startScript } from '../servers/processes.ts'
import { openLmdb } from '../servers/stores.ts'

interface Case {
  readonly path: string
  /** How much of the rate of bare undici is demanded. */
  readonly least: number
  readonly close?: boolean
  readonly withCaddy?: boolean
  readonly connections?: number
}

const DAY_SECONDS = 86_400
const CASES: Readonly<Record<string, Case>> = {
  '1KB': { path: '/1KB', least: 0.85, withCaddy: true },
  '64KB': { path: '/64KB', least: 0.95 },
  '10MB': { path: '/10MB', least: 0.95, connections: 4 },
  '1KB-close': { path: '/1KB', least: 0.85, close: true, withCaddy: true },
}
const MOST_EVENT_MS = 50

export const gateway: Part = {
  cases: [...Object.keys(CASES), 'events'],
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider(DAY_SECONDS))
    const store = open.use(await openLmdb())
    const upstream = open.use(await startScript('upstream.ts', []))
    const menshen = open.use(
      await startMenshen(store.address, provider, bench.cores, { UPSTREAM: upstream.url, TRUSTED_PROXIES: '' }),
    )
    const cookie = await signIn(menshen, 'user')
    const bare = open.use(await startScript('bare-proxy.ts', bench.cores.server, upstream.url))
    const caddy = await startCaddy(upstream, bench.cores)
    if (caddy) open.use(caddy)
    else bench.say('Caddy is left out: please install caddy')

    const rows: string[][] = []
    const marks: Mark[] = []
    for (const [name, one] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
      bench.say(`gateway, ${name}`)
      const servers = [menshen, bare, ...(caddy && one.withCaddy ? [caddy] : [])]
      const [ours, ...others] = await raceOf(bench, one, servers, cookie)
      for (const [index, record] of others.entries()) {
        const other = ['bare undici', 'Caddy'][index] ?? ''
        if (!ours) throw new Error('nothing was measured')
        const comparison = compare(ours, record)
        rows.push([name, other, ...comparisonCells(ours, record, comparison)])
        marks.push(shareMark(index === 0 ? one.least : 1, `gateway, ${name}, of the rate of ${other}`, comparison))
      }
    }
    if (bench.wants('events')) marks.push(await eventMark(bench, menshen, upstream, cookie))
    const columns = ['page', 'against', ...COMPARISON_COLUMNS]
    return { tables: [{ title: 'Through the gateway', columns, rows }], marks }
  },
}

async function raceOf(bench: Bench, one: Case, servers: readonly Served[], cookie: string) {
  const { path, close = false, connections } = one
  const shapes = servers.map(({ url }) => ({ url: url + path, close }))
  const answers = await Promise.all(shapes.map(shape => askAs(shape.url, requestOf(shape, cookie))))
  const pages = answers.map(({ status, body }) => ({ status, length: body.length }))
  if (!pages.every(page => page.status === 200 && isDeepStrictEqual(page, pages[0]))) {
    throw new Error(`different answers: ${JSON.stringify(pages)}`)
  }
  const contenders = servers.map(({ url, pid }, index) => ({
    url: url + path,
    pid,
    requests: requestsOf(shapes[index] ?? { url }, [cookie]),
    ...(connections ? { connections } : {}),
  }))
  return contest(contenders, bench.plan)
}

async function eventMark({ say }: Bench, menshen: Served, upstream: Served, cookie: string): Promise<Mark> {
  say('gateway, event streams')
  const delay = await firstEventDelay(`${menshen.url}/events`, cookie)
  const direct = await firstEventDelay(`${upstream.url}/events`, cookie)
  return {
    what: 'gateway, first event of a stream',
    demanded: `within ${MOST_EVENT_MS} ms`,
    measured: `${milliseconds(delay)} (${milliseconds(direct)} without it)`,
    verdict: delay <= MOST_EVENT_MS ? 'met' : 'missed',
  }
}
