// A request with a key against a signed-in one, at the same Menshen: as nginx asks about it, and as a page through the gateway.

import { keySha256, newKey } from '../../src/util/key-form.ts'
import { contender, contestAgainstLast } from '../measure/contest.ts'
import { checkAt, type Shape } from '../measure/requests.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { withKeys, writeConfiguration } from '../servers/configuration.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { type Served, startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const LEAST = 0.7

/** Each with the settings that it needs. */
const CASES: Readonly<Record<string, { readonly shapeAt: (base: string) => Shape; readonly settings: object }>> = {
  check: { shapeAt: checkAt, settings: {} },
  page: { shapeAt: base => ({ url: `${base}/1KB` }), settings: { TRUSTED_PROXIES: '' } },
}

export const keys: Part = {
  cases: Object.keys(CASES),
  async run(bench) {
    const rows: string[][] = []
    const marks: Mark[] = []
    const machineKey = newKey()
    await using provider = await startProvider()
    await using upstream = await startScript('upstream.ts', [])
    for (const [name, { shapeAt, settings }] of Object.entries(CASES).filter(([name]) => bench.wants(name))) {
      bench.say(`keys, ${name}`)
      await using store = await openSqlite()
      const machines = [{ name: 'bench', keySha256: keySha256(machineKey) }]
      const CONFIG = writeConfiguration({ rules: withKeys(), machines })
      const given = { UPSTREAM: upstream.url, ...settings, CONFIG }
      await using menshen = await startMenshen(store.address, provider, bench.cores, given)
      const cookie = await signIn(menshen, 'user')
      const credentials = {
        'Bearer, of a machine': `Bearer ${machineKey}`,
        'Basic, of a user': `Basic ${Buffer.from(`git:${await personalKey(menshen, cookie)}`).toString('base64')}`,
      }
      const callers = Object.values(credentials).map(authorization =>
        contender(menshen, base => ({ ...shapeAt(base), authorization }), ['']),
      )
      const pairs = await contestAgainstLast([...callers, contender(menshen, shapeAt, [cookie])], bench.plan)
      for (const [n, kind] of Object.keys(credentials).entries()) {
        const pair = pairs[n]
        if (!pair) throw new Error('nobody was measured')
        rows.push([name, kind, ...comparisonCells(pair)])
        marks.push(shareMark(LEAST, `key (${kind}), ${name}, of the rate of a signed-in request`, pair.comparison))
      }
    }
    const columns = ['request', 'key', ...comparisonColumns('key', 'session')]
    return { tables: [{ title: 'A request with a key, against a signed-in one', columns, rows }], marks }
  },
}

async function personalKey({ url }: Served, cookie: string): Promise<string> {
  const answer = await fetch(`${url}/_menshen/account/keys`, {
    method: 'POST',
    headers: { cookie, origin: new URL(url).origin },
    body: new URLSearchParams({ name: 'bench', days: '1' }),
  })
  const [key] = /mk_[\w-]{43}/.exec(await answer.text()) ?? []
  if (!key) throw new Error(`no key was made (status ${answer.status})`)
  return key
}
