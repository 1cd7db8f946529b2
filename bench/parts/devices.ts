// A signed-in request of a session that is bound to a device, against one of a session that is not: as nginx asks about it, and
// as a page through the gateway.

import { compare, contender, contest } from '../measure/contest.ts'
import { checkAt, type Shape } from '../measure/requests.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { signIn, signInBound, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openLmdb } from '../servers/stores.ts'

const LEAST = 0.97

/** Each with the settings that it needs. */
const CASES: Readonly<Record<string, { readonly shapeAt: (base: string) => Shape; readonly settings: object }>> = {
  check: { shapeAt: checkAt, settings: {} },
  page: { shapeAt: base => ({ url: `${base}/1KB` }), settings: { TRUSTED_PROXIES: '' } },
}

const WAYS = [
  { setting: 'on', open: signInBound },
  { setting: 'off', open: signIn },
]

export const devices: Part = {
  cases: Object.keys(CASES),
  async run(bench) {
    const rows: string[][] = []
    const marks: Mark[] = []
    await using provider = await startProvider()
    await using upstream = await startScript('upstream.ts', [])
    for (const [name, { shapeAt, settings }] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
      bench.say(`devices, ${name}`)
      await using open = new AsyncDisposableStack()
      const contenders = []
      for (const { setting, open: openSession } of WAYS) {
        const store = open.use(await openLmdb())
        const https = { BASE_URL: 'https://app.example.com', DEVICE_BOUND_SESSIONS: setting }
        const given = { UPSTREAM: upstream.url, ...settings, ...https }
        const menshen = open.use(await startMenshen(store.address, provider, bench.cores, given))
        contenders.push(contender(menshen, shapeAt, [await openSession(menshen, 'user')]))
      }
      const [ours, reference] = await contest(contenders, bench.plan)
      if (!ours || !reference) throw new Error('nobody was measured')
      const pair = { ours, reference, comparison: compare(ours, reference) }
      rows.push([name, ...comparisonCells(pair)])
      marks.push(shareMark(LEAST, `bound to a device, ${name}, of the rate without`, pair.comparison))
    }
    const columns = ['request', ...comparisonColumns('bound', 'not bound')]
    return { tables: [{ title: 'Sessions bound to a device', columns, rows }], marks }
  },
}
