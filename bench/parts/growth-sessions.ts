// How Menshen grows with the sessions in its embedded store: start, checks, sign-ins, console, expiry, memory, disk.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { ask } from '../measure/answer.ts'
import { compare, contender, contest, type Rated } from '../measure/contest.ts'
import { type Latency, steadyLatency } from '../measure/latency.ts'
import { checkAt } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import { secondary } from '../plan.ts'
import { memoryOf } from '../process-memory.ts'
import { belowMark, megabytes, microseconds, milliseconds, ratio, shareMark, spread, whole } from '../report/words.ts'
import { watchExpired } from '../servers/expired-sessions.ts'
import { type Menshen, signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { preload } from '../servers/preloaded.ts'
import { folder, type Served } from '../servers/processes.ts'
import { ADMIN, userNumber } from '../servers/users.ts'

const CONSOLE = '/_menshen/console/sessions'
const VISITS = 9
const AN_HOUR_AGO = -3600
const LEAST_SHARE = 0.9
const MOST_MEMORY = 250e6
const LONGEST_SWEEP_MS = 30_000

interface Grown {
  readonly size: number
  readonly directory: string
  readonly cookies: readonly string[]
  readonly menshen: Menshen
  /** Of others, while sessions expire. */
  readonly expiry: Latency
}

export const sessions: Part = {
  async run(bench) {
    const { plan, say } = bench
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const grown: Grown[] = []
    // The largest first: it takes minutes, after which all users of the others would be noted as seen, a write for each.
    for (const size of plan.storeSizes.toReversed()) grown.unshift(await grow(bench, open, provider, size))
    say('checks')
    const rated = await contest(
      grown.map(({ menshen, cookies }) => contender(menshen, checkAt, cookies)),
      secondary(plan),
    )
    const [smallest] = rated
    if (!smallest) throw new Error('nothing was measured')
    say('memory, sign-ins and the console')
    const memory = grown.map(({ menshen }) => memoryOf(menshen.pid))
    const consoles = []
    for (const { menshen } of grown) consoles.push(await visitConsole(menshen))

    const disk = grown.map(({ directory }) => bytesIn(directory))
    const compared = rated.map(one => compare(one, smallest))
    const per = (say: (rated: Rated) => string) => rated.map(say)
    const rows = [
      ['start until ready', ...grown.map(({ menshen }) => milliseconds(menshen.startMs))],
      [`checks /s, ${whole(plan.visitors)} users in turn`, ...per(({ rates }) => whole(median(rates)))],
      ['… of the first', ...compared.map(({ rate }, index) => (index === 0 ? '' : ratio(rate)))],
      ['… spread', ...compared.map(({ rate }, index) => (index === 0 ? '' : spread(rate)))],
      ['… CPU', ...per(({ cpu }) => microseconds(median(cpu)))],
      ['a sign-in', ...consoles.map(({ signInMs }) => milliseconds(signInMs))],
      ['console, first page', ...consoles.map(({ firstPage }) => milliseconds(firstPage))],
      ['console, search by user', ...consoles.map(({ search }) => milliseconds(search))],
      [`p99 of others while ${whole(plan.expiringSessions)} expire`, ...grown.map(one => milliseconds(one.expiry.p99))],
      ['memory of its own (RssAnon)', ...memory.map(({ anonymous }) => megabytes(anonymous))],
      ['memory with the mapped file (RSS)', ...memory.map(({ resident }) => megabytes(resident))],
      ['disk', ...disk.map(megabytes)],
    ]
    const largest = `${whole(plan.storeSizes.at(-1) ?? 0)} sessions`
    const last = compared.at(-1)
    return {
      tables: [
        { title: 'How it grows with sessions', columns: ['sessions in lmdb', ...plan.storeSizes.map(whole)], rows },
      ],
      marks: [
        belowMark(`${largest}, memory of the process`, memory.at(-1)?.anonymous ?? Number.NaN, MOST_MEMORY, megabytes),
        ...(last ? [shareMark(LEAST_SHARE, `${largest}, checks, of the rate with few`, last)] : []),
      ],
    }
  },
}

async function grow(
  { plan, cores, say }: Bench,
  open: AsyncDisposableStack,
  provider: Served,
  size: number,
): Promise<Grown> {
  say(`making ${whole(size)} sessions`)
  const directory = join(folder, `sessions-${size}`)
  const cookies = await preload(cores, { directory, sessions: size, cookies: Math.min(size, plan.visitors) })
  const menshen = open.use(await startMenshen(`lmdb:${directory}`, provider, cores))
  const check = `${menshen.url}/_menshen/check`
  // Just after a start everything takes longer, whatever is swept.
  const warmUntil = performance.now() + plan.warmUpSeconds * 2000
  await steadyLatency(check, cookies, () => performance.now() > warmUntil)
  await preload(cores, { directory, sessions: plan.expiringSessions, lifeSeconds: AN_HOUR_AGO })
  await using expired = watchExpired(directory)
  const deadline = performance.now() + LONGEST_SWEEP_MS
  let tick = 0
  // Counting takes a while too.
  const isOver = () => performance.now() > deadline || (++tick % 20 === 0 && expired.count() === 0)
  const expiry = await steadyLatency(check, cookies, isOver)
  return { size, directory, cookies, menshen, expiry }
}

async function visitConsole(menshen: Served) {
  const cookie = await signIn(menshen, ADMIN)
  const signInMs = await timeOf(() => signIn(menshen, ADMIN))
  const firstPage = await timeOf(() => demand(menshen.url + CONSOLE, cookie))
  const search = await timeOf(() => demand(`${menshen.url}${CONSOLE}?username=${userNumber(7)}`, cookie))
  return { signInMs, firstPage, search }
}

async function demand(url: string, cookie: string): Promise<void> {
  const { status } = await ask(url, cookie)
  if (status !== 200) throw new Error(`${url} answered ${status}`)
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  while (times.length < VISITS) {
    const startedAt = performance.now()
    await work()
    times.push(performance.now() - startedAt)
  }
  return median(times)
}

function bytesIn(directory: string): number {
  const sizes = readdirSync(directory).map(name => statSync(join(directory, name)).blocks * 512)
  return sizes.reduce((sum, size) => sum + size, 0)
}
