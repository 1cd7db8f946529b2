// Signed-in pages through the gateway, against proxies that only forward: the same undici bare, and Caddy.

import { askAs } from '../measure/answer.ts'
import { compare, contender, contest } from '../measure/contest.ts'
import { firstEventDelay } from '../measure/first-event.ts'
import { requestOf, type Shape } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, milliseconds, rivalMark, shareMark } from '../report/words.ts'
import { startCaddy } from '../servers/caddy.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { type Served, startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

interface Case {
  readonly path: string
  /** How much of the rate of bare undici is required. */
  readonly least: number
  /** Whether each request has a connection of its own. */
  readonly close?: boolean
  /** Whether Caddy is measured too, and whether its rate is required. */
  readonly caddy?: 'demanded' | 'shown'
  readonly connections?: number
}

const CASES: Readonly<Record<string, Case>> = {
  '1KB': { path: '/1KB', least: 0.85, caddy: 'demanded' },
  '64KB': { path: '/64KB', least: 0.95 },
  '10MB': { path: '/10MB', least: 0.95, connections: 4 },
  // Bare undici has two thirds of Caddy's rate here: a connection alone costs Node more than a request costs Caddy.
  '1KB-close': { path: '/1KB', least: 0.85, close: true, caddy: 'shown' },
}
const MAX_EVENT_MS = 50

export const gateway: Part = {
  cases: [...Object.keys(CASES), 'events'],
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const store = open.use(await openSqlite())
    const upstream = open.use(await startScript('upstream.ts', []))
    const settings = { UPSTREAM: upstream.url, TRUSTED_PROXIES: '' }
    const menshen = open.use(await startMenshen(store.address, provider, bench.cores, settings))
    const cookie = await signIn(menshen, 'user')
    const bare = open.use(await startScript('bare-proxy.ts', bench.cores.server, upstream.url))
    const caddy = open.use(await startCaddy(upstream, bench.cores))
    if (!caddy) bench.say('Caddy is left out: please install caddy')

    const rows: string[][] = []
    const marks: Mark[] = []
    const costs: Record<string, number> = {}
    for (const [name, one] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
      bench.say(`gateway, ${name}`)
      const rivals = one.caddy && caddy ? [bare, caddy] : [bare]
      const [ours, bares, caddys] = await race(bench, one, [menshen, ...rivals], cookie)
      if (!ours || !bares) throw new Error('nobody was measured')
      const pair = { ours, reference: bares, comparison: compare(ours, bares) }
      rows.push([name, 'bare undici', ...comparisonCells(pair)])
      marks.push(shareMark(one.least, `gateway, ${name}, of the rate of bare undici`, pair.comparison))
      costs[`page of ${name} through the gateway, CPU µs`] = median(ours.cpu)
      if (!caddys) continue
      rows.push([name, 'Caddy', ...comparisonCells({ ours, reference: caddys, comparison: compare(ours, caddys) })])
      if (one.caddy === 'demanded')
        marks.push(rivalMark(1, `gateway, ${name}: Caddy's rate, of Menshen's`, compare(caddys, ours)))
    }
    if (bench.wants('events')) marks.push(await eventMark(bench, menshen, upstream, cookie))
    const columns = ['page', 'against', ...comparisonColumns('Menshen', 'other')]
    return { tables: [{ title: 'Through the gateway', columns, rows }], marks, costs }
  },
}

async function race({ plan }: Bench, one: Case, servers: readonly Served[], cookie: string) {
  const { path, close = false, connections } = one
  const shapeAt = (base: string): Shape => ({ url: base + path, close })
  await demandSamePage(
    servers.map(({ url }) => shapeAt(url)),
    cookie,
  )
  return contest(
    servers.map(server => contender(server, shapeAt, [cookie], connections ? { connections } : {})),
    plan,
  )
}

/** Otherwise their rates could not be compared. */
async function demandSamePage(shapes: readonly Shape[], cookie: string): Promise<void> {
  const answers = await Promise.all(shapes.map(shape => askAs(shape.url, requestOf(shape, cookie))))
  const [first] = answers
  for (const { status, body } of answers) {
    if (status !== 200 || !first?.body.equals(body)) throw new Error(`one answered ${status} ${body.length} bytes`)
  }
}

async function eventMark({ say }: Bench, menshen: Served, upstream: Served, cookie: string): Promise<Mark> {
  say('gateway, event streams')
  const delay = await firstEventDelay(`${menshen.url}/events`, cookie)
  const direct = await firstEventDelay(`${upstream.url}/events`, cookie)
  return {
    what: 'gateway, first event of a stream',
    demanded: `within ${MAX_EVENT_MS} ms`,
    measured: `${milliseconds(delay)} (${milliseconds(direct)} without it)`,
    verdict: delay <= MAX_EVENT_MS ? 'met' : 'missed',
  }
}
