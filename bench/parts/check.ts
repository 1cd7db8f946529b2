// A signed-in request as nginx asks about it, and the home page as a browser asks for it, against a bare node:http server
// that gets the same bytes and sends the same bytes.

import { compare, contest } from '../measure/contest.ts'
import { ORIGINAL, requestOf, requestsOf } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Findings, Mark } from '../report/findings.ts'
import { COMPARISON_COLUMNS, comparisonCells, shareMark } from '../report/words.ts'
import { startTwin } from '../servers/bare-twin.ts'
import { type Menshen, signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { obstacleTo, openStore, STORE_NAMES } from '../servers/stores.ts'

const CHECK = { path: '/_menshen/check', original: ORIGINAL }
const HOME = { path: '/' }
/** How much of the bare server's rate a signed-in request has to reach. */
const LEAST = { lmdb: 0.85, memory: 0.85, redis: 0.8 } as const
const DAY_SECONDS = 86_400

export const check: Part = {
  cases: STORE_NAMES,
  async run(bench) {
    const rows: string[][] = []
    const marks: Mark[] = []
    const costs: Record<string, number> = {}
    await using provider = await startProvider(DAY_SECONDS)
    for (const name of STORE_NAMES.filter(bench.wants)) {
      const obstacle = obstacleTo(name)
      if (obstacle) {
        bench.say(`${name} is left out: ${obstacle}`)
        continue
      }
      bench.say(`check on ${name}`)
      await using store = await openStore(name)
      await using menshen = await startMenshen(store.address, provider, bench.cores)
      const { cells, comparison, cpu } = await againstBare(bench, menshen, CHECK)
      rows.push([name, ...cells])
      marks.push(shareMark(LEAST[name], `check on ${name}, of a bare server's rate`, comparison))
      costs[`check on ${name}, CPU µs`] = cpu
    }
    const columns = ['store', ...COMPARISON_COLUMNS]
    return { tables: [{ title: 'A signed-in request, as nginx asks about it', columns, rows }], marks, costs }
  },
}

export const home: Part = {
  async run(bench): Promise<Findings> {
    bench.say('home page')
    await using provider = await startProvider(DAY_SECONDS)
    await using store = await openStore('lmdb')
    await using menshen = await startMenshen(store.address, provider, bench.cores)
    const { cells, comparison } = await againstBare(bench, menshen, HOME)
    const columns = ['store', ...COMPARISON_COLUMNS]
    return {
      tables: [{ title: 'The home page, as a browser asks for it', columns, rows: [['lmdb', ...cells]] }],
      marks: [shareMark(LEAST.lmdb, "home page on lmdb, of a bare server's rate", comparison)],
    }
  },
}

async function againstBare(bench: Bench, menshen: Menshen, { path, original }: { path: string; original?: string }) {
  const cookie = await signIn(menshen, 'user')
  const shapeFor = (base: string) => ({ url: base + path, ...(original ? { original } : {}) })
  const request = requestOf(shapeFor(menshen.url), cookie)
  await using bare = await startTwin(menshen.url + path, request, { on: bench.cores.server })
  const contenders = [menshen, bare].map(({ url, pid }) => ({
    url: url + path,
    pid,
    requests: requestsOf(shapeFor(url), [cookie]),
  }))
  const [ours, bares] = await contest(contenders, bench.plan)
  if (!ours || !bares) throw new Error('both were measured')
  const comparison = compare(ours, bares)
  return { comparison, cells: comparisonCells(ours, bares, comparison), cpu: median(ours.cpu) }
}
