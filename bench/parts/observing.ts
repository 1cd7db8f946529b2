// The cost of being observed: the same requests with and without metrics, and with an access log.

import { compare, contender, contest } from '../measure/contest.ts'
import { checkAt, type Shape } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { microseconds, ratio, shareMark, spread, whole } from '../report/words.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const LEAST = 0.95
const SHAPES: Readonly<Record<string, (base: string) => Shape>> = {
  check: checkAt,
  'page of 1 KB': base => ({ url: `${base}/1KB` }),
}
const WAYS = [
  { name: 'nothing', settings: { METRICS_FROM: 'none', AUDIT_KEEP: '0' } },
  { name: 'metrics and audit trail', settings: {} },
  { name: 'the access log too', settings: { ACCESS_LOG: 'true', LOG_LEVEL: 'info' } },
]

export const observing: Part = {
  async run({ plan, cores, say }) {
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const upstream = open.use(await startScript('upstream.ts', []))
    const servers = []
    for (const { settings } of WAYS) {
      const store = open.use(await openSqlite())
      const more = { UPSTREAM: upstream.url, ...settings }
      const menshen = open.use(await startMenshen(store.address, provider, cores, more))
      servers.push({ menshen, cookie: await signIn(menshen, 'user') })
    }
    const rows: string[][] = []
    const marks: Mark[] = []
    for (const [what, shapeAt] of Object.entries(SHAPES)) {
      say(`${what}, observed and not`)
      const contenders = servers.map(({ menshen, cookie }) => contender(menshen, shapeAt, [cookie]))
      const [nothing, ...observed] = await contest(contenders, plan)
      if (!nothing) throw new Error('nothing was measured')
      rows.push([what, 'nothing', whole(median(nothing.rates)), '', '', microseconds(median(nothing.cpu)), ''])
      for (const [index, rated] of observed.entries()) {
        const comparison = compare(rated, nothing)
        const { name = '' } = WAYS[index + 1] ?? {}
        const [rate, cpu] = [whole(median(rated.rates)), microseconds(median(rated.cpu))]
        rows.push([what, name, rate, ratio(comparison.rate), spread(comparison.rate), cpu, ratio(comparison.cpu)])
        if (index === 0) marks.push(shareMark(LEAST, `${what} with metrics and audit, of the rate without`, comparison))
      }
    }
    const columns = ['signed-in request', 'observed by', '/s', 'ratio', 'spread', 'CPU', 'CPU ratio']
    return { tables: [{ title: 'Being observed', columns, rows }], marks }
  },
}
