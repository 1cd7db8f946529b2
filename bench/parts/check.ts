// A signed-in request as nginx asks about it, with all headers of a browser or with few, and the home page as a browser asks
// for it, against a bare node:http server that gets the same bytes and sends the same bytes.

import { contender, contestAgainstLast } from '../measure/contest.ts'
import { checkAt, leanCheckAt, requestOf, type Shape } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { startTwin } from '../servers/bare-twin.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import type { Served } from '../servers/processes.ts'
import { openStore, STORE_NAMES, storesHere } from '../servers/stores.ts'

/** How the request looks, and how much of the bare server's rate it has to reach. */
const SHAPES = {
  '': { shapeAt: checkAt, said: 'check', headers: 'as a browser sends them', least: 0.9 },
  // The fewer bytes there are to parse, the more our own work weighs.
  '-lean': { shapeAt: leanCheckAt, said: 'check with five headers', headers: 'cookie and four more', least: 0.82 },
} as const
const LEAST_OF_HOME = 0.85

export const check: Part = {
  cases: Object.keys(SHAPES).flatMap(suffix => STORE_NAMES.map(name => name + suffix)),
  async run(bench) {
    const rows: string[][] = []
    const marks: Mark[] = []
    const costs: Record<string, number> = {}
    await using provider = await startProvider()
    for (const [suffix, { shapeAt, said, headers, least }] of Object.entries(SHAPES)) {
      for (const name of storesHere({ ...bench, wants: name => bench.wants(name + suffix) })) {
        bench.say(`${said} on ${name}`)
        await using store = await openStore(name)
        await using menshen = await startMenshen(store.address, provider, bench.cores)
        for (const pair of await againstBare(bench, menshen, shapeAt)) {
          rows.push([name, headers, ...comparisonCells(pair)])
          marks.push(shareMark(least, `${said} on ${name}, of a bare server's rate`, pair.comparison))
          costs[`${said} on ${name}, CPU µs`] = median(pair.ours.cpu)
        }
      }
    }
    const columns = ['store', 'headers', ...comparisonColumns('Menshen', 'bare')]
    return { tables: [{ title: 'A signed-in request, as nginx asks about it', columns, rows }], marks, costs }
  },
}

export const home: Part = {
  async run(bench) {
    bench.say('home page')
    await using provider = await startProvider()
    await using store = await openStore('sqlite')
    await using menshen = await startMenshen(store.address, provider, bench.cores)
    const pairs = await againstBare(bench, menshen, base => ({ url: `${base}/` }))
    const columns = ['store', ...comparisonColumns('Menshen', 'bare')]
    const rows = pairs.map(pair => ['sqlite', ...comparisonCells(pair)])
    return {
      tables: [{ title: 'The home page, as a browser asks for it', columns, rows }],
      marks: pairs.map(({ comparison }) => shareMark(LEAST_OF_HOME, "home page, of a bare server's rate", comparison)),
    }
  },
}

async function againstBare({ plan, cores }: Bench, menshen: Served, shapeAt: (base: string) => Shape) {
  const cookie = await signIn(menshen, 'user')
  const shape = shapeAt(menshen.url)
  await using bare = await startTwin(shape.url, { request: requestOf(shape, cookie), on: cores.server })
  // Awaited here, because the bare server stops when this function returns.
  return await contestAgainstLast(
    [menshen, bare].map(server => contender(server, shapeAt, [cookie])),
    plan,
  )
}
