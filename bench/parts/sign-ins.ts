// Whole sign-ins: GET /callback, the two calls to a provider that answers immediately, and a session that would survive a
// crash where the store can promise that. Against a bare server that makes the same two calls, keeps nothing, and answers the
// same bytes.
//
// Both open a connection to the provider for each sign-in and make its two calls over it: Menshen never shares one between
// users. The connections of the browsers stay open at both.

import { setTimeout as pause } from 'node:timers/promises'
import { contender, contestAgainstLast } from '../measure/contest.ts'
import { readCounter } from '../measure/metrics.ts'
import { requestOf, type Shape } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { startTwin } from '../servers/bare-twin.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { openStore, STORE_NAMES, storesHere } from '../servers/stores.ts'

const LEAST = 0.4
const FOUND = 302
/** Without a proxy in front, because the metrics are not shown to one. */
const DIRECT = { TRUSTED_PROXIES: '' }
/** Per visitor of the plan. V8 compiles the much longer code of a sign-in later than that of the bare server. */
const WARM_UP_REQUESTS = 5
/** The load stops in the middle of its last sign-ins. */
const IN_FLIGHT_MS = 1000

export const signIns: Part = {
  cases: STORE_NAMES,
  async run(bench) {
    const { plan, cores, say } = bench
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const names = storesHere(bench)
    const servers = []
    for (const name of names) {
      const store = open.use(await openStore(name))
      servers.push(open.use(await startMenshen(store.address, provider, cores, DIRECT)))
    }
    const [first] = servers
    if (!first) throw new Error('there is no store')
    const shape = callbackAt(first.url)
    const bare = open.use(
      await startTwin(shape.url, {
        request: requestOf(shape),
        expected: FOUND,
        on: cores.server,
        script: ['bare-client.ts', provider.url, 'sign-in'],
      }),
    )
    say(`sign-ins on ${names.join(', ')}`)
    const pairs = await contestAgainstLast(
      [...servers, bare].map(server => ({
        ...contender(server, callbackAt, ['']),
        warmUpRequests: plan.visitors * WARM_UP_REQUESTS,
      })),
      plan,
    )
    await pause(IN_FLIGHT_MS)
    for (const { url } of servers) {
      const failed = await readCounter(url, 'menshen_sign_ins_total', labels => !labels.includes('result="ok"'))
      if (failed > 0) throw new Error(`${failed} sign-ins at ${url} failed`)
    }
    return {
      tables: [
        {
          title: 'Sign-ins',
          columns: ['store', ...comparisonColumns('Menshen', 'bare')],
          rows: pairs.map((pair, index) => [names[index] ?? '', ...comparisonCells(pair)]),
        },
      ],
      marks: pairs.map(({ comparison }, index) =>
        shareMark(
          LEAST,
          `sign-ins on ${names[index]}, of a bare server with the same two calls, a new connection for each sign-in`,
          comparison,
        ),
      ),
      costs: Object.fromEntries(
        pairs.map(({ ours }, index) => [`sign-in on ${names[index]}, CPU µs`, median(ours.cpu)]),
      ),
    }
  },
}

function callbackAt(base: string): Shape {
  return { url: `${base}/callback?code=user&state=bench_idp` }
}
