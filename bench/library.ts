// A signed-in request of an application with Menshen inside, against the same application with what is usual there.

import { freePort } from '../test/kit/free-port.ts'
import { ask } from './answer.ts'
import { contest, median, quartiles, ratios } from './contest.ts'
import { signIn, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { type Served, script, served, startUntil } from './processes.ts'
import { atLeast, type Findings, hundredths, type Mark, whole } from './report.ts'

const PAIRS = [
  { framework: 'Express', ours: 'express-menshen', theirs: 'express-passport', usual: 'express-session and passport' },
  { framework: 'Fastify', ours: 'fastify-menshen', theirs: 'fastify-session', usual: '@fastify/session' },
]
/** Many short rounds: what disturbs the machine for a while then disturbs both. */
const ROUNDS_FOR_ONE = 3
const LEAST = 1.5
const DAY_SECONDS = 86_400

export async function benchLibrary(bench: Bench): Promise<Findings> {
  const rows: string[][] = []
  const marks: Mark[] = []
  const plan = { ...bench.plan, rounds: bench.plan.rounds * ROUNDS_FOR_ONE, roundSeconds: 1 }
  await using provider = await startProvider(DAY_SECONDS)
  for (const { framework, ours, theirs, usual } of PAIRS) {
    bench.say(`${framework}: Menshen and ${usual}`)
    await using one = await startApplication(ours, provider, bench.cores.server)
    await using other = await startApplication(theirs, provider, bench.cores.server)
    const loads = [
      { url: `${one.url}/`, cookie: await signIn(one, 'user') },
      { url: `${other.url}/`, cookie: await signInThere(other, 'user') },
    ]
    for (const { url, cookie } of loads) await demandGreeting(url, cookie)
    const [rates, usualRates] = await contest(loads, plan)
    const each = ratios(rates, usualRates)
    const [low, high] = quartiles(each)
    const spread = `${hundredths(low)} to ${hundredths(high)}`
    rows.push([framework, usual, whole(median(rates)), whole(median(usualRates)), hundredths(median(each)), spread])
    marks.push(atLeast(LEAST, `signed-in request in ${framework}, of the rate with ${usual}`, median(each)))
  }
  const columns = ['application', 'against', 'Menshen /s', 'the other /s', 'ratio', 'half of the rounds within']
  return { table: { title: 'Inside an application', columns, rows }, marks }
}

async function startApplication(kind: string, provider: Served, on: readonly string[]): Promise<Served> {
  const port = await freePort()
  return served(port, await startUntil('ready', script('application.ts', kind, port, provider.url), { on }))
}

async function signInThere({ url }: Served, username: string): Promise<string> {
  const { headers } = await ask(`${url}/sign-in?user=${username}`)
  const [cookie = ''] = (headers['set-cookie'] ?? '').split(';')
  return cookie
}

/** The same page for the same user: otherwise something else would be measured. */
async function demandGreeting(url: string, cookie: string): Promise<void> {
  const { status, body } = await ask(url, cookie)
  if (status !== 200 || body.toString() !== 'Hello user') throw new Error(`${url} answered ${status} ${body}`)
}
