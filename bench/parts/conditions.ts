// A signed-in request whose rule has networks, hours and maxAge, against the same one without them: as nginx asks about it, and
// as a page through the gateway.

import { compare, contender, contest } from '../measure/contest.ts'
import { checkAt, type Shape } from '../measure/requests.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { withConditions, writeConfiguration } from '../servers/configuration.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openLmdb } from '../servers/stores.ts'

const LEAST = 0.97

/** Each with the settings that it needs. */
const CASES: Readonly<Record<string, { readonly shapeAt: (base: string) => Shape; readonly settings: object }>> = {
  check: { shapeAt: checkAt, settings: {} },
  page: { shapeAt: base => ({ url: `${base}/1KB` }), settings: { TRUSTED_PROXIES: '' } },
}

export const conditions: Part = {
  cases: Object.keys(CASES),
  async run(bench) {
    const rows: string[][] = []
    const marks: Mark[] = []
    await using provider = await startProvider()
    await using upstream = await startScript('upstream.ts', [])
    for (const [name, { shapeAt, settings }] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
      bench.say(`conditions, ${name}`)
      await using open = new AsyncDisposableStack()
      const contenders = []
      for (const CONFIG of [writeConfiguration({ rules: withConditions() }), writeConfiguration()]) {
        const store = open.use(await openLmdb())
        const given = { UPSTREAM: upstream.url, ...settings, CONFIG }
        const menshen = open.use(await startMenshen(store.address, provider, bench.cores, given))
        contenders.push(contender(menshen, shapeAt, [await signIn(menshen, 'user')]))
      }
      const [ours, reference] = await contest(contenders, bench.plan)
      if (!ours || !reference) throw new Error('nobody was measured')
      const pair = { ours, reference, comparison: compare(ours, reference) }
      rows.push([name, ...comparisonCells(pair)])
      marks.push(shareMark(LEAST, `networks, hours and maxAge, ${name}, of the rate without them`, pair.comparison))
    }
    const columns = ['request', ...comparisonColumns('with', 'without')]
    return { tables: [{ title: 'Rules with networks, hours and maxAge', columns, rows }], marks }
  },
}
