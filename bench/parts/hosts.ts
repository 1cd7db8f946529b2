// Several host names: a page of a host against the same page at BASE_URL, 200 hosts against one, and what an entry takes.

import { performance } from 'node:perf_hooks'
import { askAs } from '../measure/answer.ts'
import { type Contender, compare, contender, contest } from '../measure/contest.ts'
import { requestOf } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import { belowMark, microseconds, milliseconds, ratio, shareMark, spread, whole } from '../report/words.ts'
import { manyRules, writeConfiguration } from '../servers/configuration.ts'
import { type Menshen, signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const [LEAST_OF_PORTAL, LEAST_OF_ONE, MAX_MS] = [0.97, 0.95, 20]
const ENTRIES = 50

export const hosts: Part = {
  async run({ plan, cores, say }) {
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const upstream = open.use(await startScript('upstream.ts', []))
    const counts = [1, plan.upstreams]
    const rules = manyRules(12)
    const servers: Menshen[] = []
    for (const count of counts) {
      const names = Array.from({ length: count }, (_, n) => `app-${String(n).padStart(3, '0')}.test`)
      const CONFIG = writeConfiguration({
        hosts: Object.fromEntries(names.map(name => [name, { upstream: upstream.url, rules }])),
      })
      const store = open.use(await openSqlite())
      const more = { TRUSTED_PROXIES: '', UPSTREAM: upstream.url, CONFIG }
      servers.push(open.use(await startMenshen(store.address, provider, cores, more)))
    }
    const [one, many] = servers
    if (!one || !many) throw new Error('nothing was started')
    say(`pages at BASE_URL, at one host and at one of ${counts[1]} hosts`)
    const ticket = await signIn(one, 'user')
    const page = (base: string) => ({ url: `${base}/1KB` })
    const last = `app-${String((counts[1] ?? 1) - 1).padStart(3, '0')}.test`
    const ticketOfMany = await signIn(many, 'user')
    const contenders: Contender[] = [
      contender(one, page, [ticket]),
      contender(one, base => ({ ...page(base), host: 'app-000.test' }), [await enter(one, ticket, 'app-000.test')]),
      contender(many, base => ({ ...page(base), host: last }), [await enter(many, ticketOfMany, last)]),
      // Both processes answer the same number of requests, so that the compiler has seen the same of each.
      contender(many, page, [ticketOfMany]),
    ]
    const [portal, host, ofMany] = await contest(contenders, plan)
    if (!portal || !host || !ofMany) throw new Error('nothing was measured')
    const [toPortal, toOne] = [compare(host, portal), compare(ofMany, host)]
    const times: number[] = []
    for (let n = 0; n < ENTRIES; n++) {
      const startedAt = performance.now()
      await enter(one, ticket, 'app-000.test', n)
      times.push(performance.now() - startedAt)
    }
    const rated = [portal, host, ofMany]
    return {
      tables: [
        {
          title: 'Several hosts',
          columns: ['page', 'at BASE_URL', 'at a host', `at one of ${counts[1]} hosts`],
          rows: [
            ['requests /s', ...rated.map(({ rates }) => whole(median(rates)))],
            ['… of the one before', '', ratio(toPortal.rate), ratio(toOne.rate)],
            ['… spread', '', spread(toPortal.rate), spread(toOne.rate)],
            ['… by CPU', '', ratio(toPortal.cpu), ratio(toOne.cpu)],
            ['CPU', ...rated.map(({ cpu }) => microseconds(median(cpu)))],
            ['start until ready', '', ...servers.map(({ startMs }) => milliseconds(startMs))],
            ['an entry', '', milliseconds(median(times)), ''],
          ],
        },
      ],
      marks: [
        shareMark(LEAST_OF_PORTAL, 'a page at a host, of the rate at BASE_URL', toPortal),
        shareMark(LEAST_OF_ONE, `${counts[1]} hosts, of the rate with one`, toOne),
        belowMark('an entry, both redirects', median(times), MAX_MS, milliseconds),
      ],
    }
  },
}

const NONCE = 'n'.repeat(43)

/** The two redirects that a browser follows; returns the cookie of the host. */
async function enter({ url }: Menshen, ticket: string, host: string, n = 0): Promise<string> {
  const challenge = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(NONCE))).toString('base64url')
  const to = encodeURIComponent(`http://${host}/page-${n}`)
  const asked = `${url}/_menshen/enter?to=${to}&n=${challenge}`
  const { headers } = await askAs(asked, requestOf({ url: asked }, ticket))
  const { pathname, search } = new URL(headers.location ?? '')
  const back = url + pathname + search
  const entered = await askAs(back, requestOf({ url: back, host }, `menshen_entry=${NONCE}`))
  const [cookie] = /menshen_session=[\w-]+/.exec(entered.headers['set-cookie'] ?? '') ?? []
  if (!cookie) throw new Error(`${host} was not entered: ${entered.status}`)
  return cookie
}
