// Whether processes get slower with age: two that have served for minutes, with sign-ins, refreshes, pages and refusals among the
// checks, and then had a quiet time, in which V8 gives memory back, against two on the same store that have done the same for
// seconds. What V8 compiles is a matter of chance, so any two processes differ by a few hundredths: the mark is about both of each
// kind. One more has served only checks, and V8 has compiled only checks for it: how much faster it is shows the price of serving
// requests of all kinds, at any age.

import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { ask } from '../measure/answer.ts'
import { compare, contender, contest, type Rated } from '../measure/contest.ts'
import { checkAt, leanCheckAt, requestsOf, type Shape } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import { measure } from '../measure/wrk.ts'
import type { Part } from '../part.ts'
import { memoryOf } from '../process-memory.ts'
import { megabytes, microseconds, ratio, shareMark, spread, whole } from '../report/words.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import type { Served } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'
import { ADMIN, userNumber } from '../servers/users.ts'

const LEAST = 0.97
/** Less than the refresh lead: the first visit after a sign-in refreshes. */
const SHORT_SECONDS = 290
const DAY_SECONDS = 86_400
const USERS_AT_ONCE = 20
const LOAD_SECONDS = 1
/** Users who take turns under load. */
const MAX_COOKIES = 1000

/** What is requested under load. */
const SHAPES = [checkAt, leanCheckAt, homeAt]
/** What an admin and a visitor request in addition. */
const PAGES = ['/_menshen/console', '/_menshen/console/sessions', '/_menshen/account', '/_menshen/me', '/nothing/here']

export const age: Part = {
  async run({ plan, cores, say }) {
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider(SHORT_SECONDS, DAY_SECONDS))
    const store = open.use(await openSqlite())
    const start = async () => open.use(await startMenshen(store.address, provider, cores))
    const old = [await start(), await start()]
    say(`${whole(plan.lifeSeconds)} s of load for each`)
    const lives = []
    for (const one of old) lives.push(await live(one, plan.lifeSeconds))
    say(`${whole(plan.quietSeconds)} quiet s`)
    await pause(plan.quietSeconds * 1000)
    const young = [await start(), await start()]
    for (const one of young) await live(one, plan.youngSeconds)
    const onlyChecks = await start()
    say('old against young')
    const servers = [...old, ...young, onlyChecks]
    const cookies = lives.at(-1)?.cookies ?? []
    const rated = await contest(
      servers.map(server => contender(server, checkAt, cookies)),
      plan,
    )
    const both = together(rated.slice(0, 2))
    const reference = together(rated.slice(2, 4))

    const names = [
      ...lives.map(({ served }) => `after ${whole(served)} requests and a quiet time`),
      ...young.map(() => `after ${whole(plan.youngSeconds)} s of the same`),
      'fresh, nothing but checks',
    ]
    const rows = rated.map((one, index) => {
      const { rate } = compare(one, reference)
      const { anonymous } = memoryOf(servers[index]?.pid ?? 0)
      const speed = [whole(median(one.rates)), ratio(rate), spread(rate), microseconds(median(one.cpu))]
      return [names[index] ?? '', ...speed, megabytes(anonymous)]
    })
    return {
      tables: [
        {
          title: 'Age: processes after minutes of load, and young ones',
          columns: ['process', 'checks /s', 'of the young', 'spread', 'CPU', 'its own memory (RssAnon)'],
          rows,
        },
      ],
      marks: [shareMark(LEAST, 'checks of old processes, of the rate of young ones', compare(both, reference))],
    }
  },
}

/** The mean of processes of one kind, round by round. */
function together(kind: readonly Rated[]): Rated {
  const meanOf = (key: keyof Rated) =>
    kind[0]?.[key].map((_, round) => kind.reduce((sum, one) => sum + (one[key][round] ?? 0), 0) / kind.length) ?? []
  return { rates: meanOf('rates'), cpu: meanOf('cpu'), busy: meanOf('busy') }
}

/** Does what users do in hours, only faster. Returns the latest cookies, and how many requests there were. */
async function live(menshen: Served, seconds: number): Promise<{ cookies: string[]; served: number }> {
  const cookies: string[] = []
  const until = performance.now() + seconds * 1000
  let served = 0
  for (let turn = 0; turn === 0 || performance.now() < until; turn++) {
    const users = Array.from({ length: USERS_AT_ONCE }, (_, n) => userNumber(turn * USERS_AT_ONCE + n))
    cookies.push(...(await Promise.all(users.map(user => comeAndGo(menshen, user)))))
    cookies.splice(0, cookies.length - MAX_COOKIES)
    const admin = await signIn(menshen, ADMIN)
    for (const page of PAGES) await Promise.all([ask(menshen.url + page, admin), ask(menshen.url + page)])
    for (const shapeAt of SHAPES) {
      const shape = shapeAt(menshen.url)
      const load = { url: shape.url, requests: requestsOf(shape, cookies) }
      served += (await measure(load, Math.min(seconds, LOAD_SECONDS), served)).requests
    }
  }
  return { cookies, served }
}

/** Signs in, visits (which refreshes), signs out, and does the first two once more. */
async function comeAndGo(menshen: Served, user: string): Promise<string> {
  const come = async () => {
    const cookie = await signIn(menshen, user)
    await ask(`${menshen.url}/_menshen/check`, cookie)
    return cookie
  }
  const headers = { cookie: await come(), origin: menshen.url }
  await fetch(`${menshen.url}/logout`, { method: 'POST', headers, redirect: 'manual' })
  return come()
}

function homeAt(base: string): Shape {
  return { url: `${base}/` }
}
