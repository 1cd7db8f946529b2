// Sessions of active users whose tokens are due: every visit costs a refresh, with two writes, of its lease and of the session.
// Against a bare server that makes the same call, keeps nothing, and answers the same bytes. Both open a connection to the
// provider for each refresh; the connections of the clients stay open at both. And a storm: many sessions that fall due
// together, whose users all come at the same time with two requests each, at a provider that refuses a second refresh with one token.

import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { inParallel } from '../in-parallel.ts'
import { ask } from '../measure/answer.ts'
import { contender, contestAgainstLast } from '../measure/contest.ts'
import { checkAt, requestOf } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Findings } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark, whole } from '../report/words.ts'
import { startTwin } from '../servers/bare-twin.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { preload } from '../servers/preloaded.ts'
import { folder, type Served } from '../servers/processes.ts'

const LEAST = 0.4
/** Less than the refresh lead, so that it is due immediately, and more than this takes. */
const SHORT_SECONDS = 290
const USERS_AT_ONCE = 200
/** Per session. V8 compiles the much longer code of a refresh later than that of the bare server. */
const WARM_UP_REQUESTS = 5

export const refreshes: Part = {
  cases: ['rate', 'storm'],
  async run(bench) {
    const parts = [
      ...(bench.wants('rate') ? [await benchRate(bench)] : []),
      ...(bench.wants('storm') ? [await benchStorm(bench)] : []),
    ]
    return {
      tables: parts.flatMap(({ tables }) => tables),
      marks: parts.flatMap(({ marks }) => marks),
      costs: Object.assign({}, ...parts.map(({ costs }) => costs)),
    }
  },
}

/** With tokens that are due again immediately, so that each visit refreshes. */
async function benchRate({ plan, cores, say }: Bench): Promise<Findings> {
  await using open = new AsyncDisposableStack()
  const provider = open.use(await startProvider(SHORT_SECONDS, SHORT_SECONDS))
  const directory = join(folder, 'refreshes')
  const cookies = await preload(cores, { directory, sessions: plan.visitors, lifeSeconds: SHORT_SECONDS })
  const menshen = open.use(await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores))
  const shape = checkAt(menshen.url)
  const bare = open.use(
    await startTwin(shape.url, {
      request: requestOf(shape, cookies[0]),
      on: cores.server,
      script: ['bare-client.ts', provider.url, 'refresh'],
    }),
  )
  say(`refreshes of ${whole(plan.visitors)} sessions in turn`)
  const pairs = await contestAgainstLast(
    [menshen, bare].map(server => ({
      ...contender(server, checkAt, cookies),
      warmUpRequests: plan.visitors * WARM_UP_REQUESTS,
    })),
    plan,
  )
  return {
    tables: [
      {
        title: 'Refreshes',
        columns: ['store', ...comparisonColumns('Menshen', 'bare')],
        rows: pairs.map(pair => ['sqlite', ...comparisonCells(pair)]),
      },
    ],
    marks: pairs.map(({ comparison }) =>
      shareMark(
        LEAST,
        'refreshes on sqlite, of a bare server with the same call, a new connection for each',
        comparison,
      ),
    ),
    costs: { 'refresh on sqlite, CPU µs': median(pairs[0]?.ours.cpu ?? []) },
  }
}

async function benchStorm({ plan, cores, say }: Bench): Promise<Findings> {
  await using provider = await startProvider(SHORT_SECONDS)
  const directory = join(folder, 'storm')
  const cookies = await preload(cores, { directory, sessions: plan.dueSessions, lifeSeconds: SHORT_SECONDS })
  await using menshen = await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores)
  say(`a storm of ${whole(cookies.length)} sessions`)
  const storm = await visitAll(menshen, cookies)
  const refreshed = await refreshesOf(provider)
  const after = await visitAll(menshen, cookies)
  const again = (await refreshesOf(provider)) - refreshed

  const failed = storm.failed + after.failed
  const signedOut = Math.max(storm.signedOut, after.signedOut)
  const figures = [cookies.length, refreshed, again, failed, signedOut].map(whole)
  return {
    tables: [
      {
        title: 'A refresh storm, on sqlite',
        columns: ['sessions', 'refreshes', 'afterwards', 'failures', 'sign-outs', 'time', 'refreshes /s'],
        rows: [[...figures, `${storm.seconds.toFixed(1)} s`, whole(refreshed / storm.seconds)]],
      },
    ],
    marks: [
      {
        what: 'refresh storm',
        demanded: 'one refresh a session, nobody signed out',
        measured: `${whole(refreshed + again)} for ${whole(cookies.length)}, ${whole(signedOut)} signed out`,
        verdict: refreshed === cookies.length && again === 0 && failed === 0 && signedOut === 0 ? 'met' : 'missed',
      },
    ],
  }
}

async function visitAll({ url }: Served, cookies: readonly string[]) {
  const startedAt = performance.now()
  let failed = 0
  let signedOut = 0
  await inParallel(cookies, USERS_AT_ONCE, async cookie => {
    const visit = () => ask(`${url}/_menshen/check`, cookie).catch(() => ({ status: 0 }))
    const answers = await Promise.all([visit(), visit()])
    if (answers.some(({ status }) => status === 401)) signedOut++
    else if (answers.some(({ status }) => status !== 200)) failed++
  })
  return { failed, signedOut, seconds: (performance.now() - startedAt) / 1000 }
}

async function refreshesOf({ url }: Served): Promise<number> {
  const { body } = await ask(`${url}/refreshes`)
  return JSON.parse(body.toString()).refreshes
}
