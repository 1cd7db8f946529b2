// A signed-in request with a feature, against the same one without it: as nginx asks about it, and as a page through the gateway.

import { contender, contestAgainstLast } from '../measure/contest.ts'
import { checkAt, type Shape } from '../measure/requests.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { withConditions, writeConfiguration } from '../servers/configuration.ts'
import { signIn, signInBound, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const LEAST = 0.97

/** Each with the settings that it needs. */
const CASES: Readonly<Record<string, { readonly shapeAt: (base: string) => Shape; readonly settings: object }>> = {
  check: { shapeAt: checkAt, settings: {} },
  page: { shapeAt: base => ({ url: `${base}/1KB` }), settings: { TRUSTED_PROXIES: '' } },
}

interface Way {
  readonly settings: Readonly<Record<string, string>>
  /** Returns the cookies of a user. */
  readonly signIn: typeof signIn
}

interface Feature {
  readonly title: string
  /** With the feature, and without it. */
  readonly columns: readonly [string, string]
  readonly mark: string
  ways(): readonly [Way, Way]
}

/** Rules with networks, hours and maxAge. */
export const conditions = featurePart({
  title: 'Rules with networks, hours and maxAge',
  columns: ['with', 'without'],
  mark: 'networks, hours and maxAge',
  ways: () => [
    { settings: { CONFIG: writeConfiguration({ rules: withConditions() }) }, signIn },
    { settings: { CONFIG: writeConfiguration() }, signIn },
  ],
})

/** Sessions that are bound to a device. */
export const devices = featurePart({
  title: 'Sessions bound to a device',
  columns: ['bound', 'not bound'],
  mark: 'bound to a device',
  ways() {
    const https = { BASE_URL: 'https://app.example.com' }
    return [
      { settings: { ...https, DEVICE_BOUND_SESSIONS: 'on' }, signIn: signInBound },
      { settings: { ...https, DEVICE_BOUND_SESSIONS: 'off' }, signIn },
    ]
  },
})

function featurePart({ title, columns, mark, ways }: Feature): Part {
  return {
    cases: Object.keys(CASES),
    async run(bench) {
      const rows: string[][] = []
      const marks: Mark[] = []
      await using provider = await startProvider()
      await using upstream = await startScript('upstream.ts', [])
      for (const [name, { shapeAt, settings }] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
        bench.say(`${mark}, ${name}`)
        await using open = new AsyncDisposableStack()
        const contenders = []
        for (const way of ways()) {
          const store = open.use(await openSqlite())
          const given = { UPSTREAM: upstream.url, ...settings, ...way.settings }
          const menshen = open.use(await startMenshen(store.address, provider, bench.cores, given))
          contenders.push(contender(menshen, shapeAt, [await way.signIn(menshen, 'user')]))
        }
        for (const pair of await contestAgainstLast(contenders, bench.plan)) {
          rows.push([name, ...comparisonCells(pair)])
          marks.push(shareMark(LEAST, `${mark}, ${name}, of the rate without`, pair.comparison))
        }
      }
      return { tables: [{ title, columns: ['request', ...comparisonColumns(...columns)], rows }], marks }
    },
  }
}
