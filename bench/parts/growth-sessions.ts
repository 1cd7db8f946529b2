// How Menshen grows with the sessions in its embedded store: start, checks, sign-ins, console, expiry, memory, disk.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { ask } from '../measure/answer.ts'
import { type Comparison, compare, contender, contest, type Rated } from '../measure/contest.ts'
import { type Latency, steadyLatency } from '../measure/latency.ts'
import { checkAt } from '../measure/requests.ts'
import { type Distribution, median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Plan } from '../plan.ts'
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
const MAX_MEMORY = 220e6
const LONGEST_SWEEP_MS = 30_000

interface Filled {
  readonly size: number
  readonly directory: string
}

interface Grown extends Filled {
  readonly cookies: readonly string[]
  readonly menshen: Menshen
  /** The latency of other requests, while sessions expire. */
  readonly expiry: Latency
}

/** One entry for each size, from the smallest. */
interface Measured {
  readonly grown: readonly Grown[]
  readonly rated: readonly Rated[]
  /** Compared with the smallest. */
  readonly compared: readonly Comparison[]
  /** In bytes: its own, and with the mapped file. */
  readonly memory: readonly ReturnType<typeof memoryOf>[]
  readonly consoles: readonly Awaited<ReturnType<typeof visitConsole>>[]
}

export const sessions: Part = {
  async run(bench) {
    const { plan } = bench
    await using provider = await startProvider()
    const filled: Filled[] = []
    for (const size of plan.storeSizes) filled.push(await fill(bench, size))
    // In both orders, to tell the effect of the size from the effect of being first.
    const upwards = await measureAll(bench, provider, filled)
    const downwards = await measureAll(bench, provider, filled.toReversed())

    const disk = filled.map(({ directory }) => bytesIn(directory))
    const both = [upwards, downwards]
    const largest = `${whole(plan.storeSizes.at(-1) ?? 0)} sessions`
    const memory = Math.max(...both.map(({ memory }) => memory.at(-1)?.anonymous ?? Number.NaN))
    const { grown, consoles } = upwards
    const rows = [
      ['start until ready', ...grown.map(({ menshen }) => milliseconds(menshen.startMs))],
      ...checkRows(`checks /s, ${whole(plan.visitors)} users in turn`, upwards),
      ...checkRows('checks /s, the largest started first', downwards),
      ['a sign-in', ...consoles.map(({ signInMs }) => milliseconds(signInMs))],
      ['console, first page', ...consoles.map(({ firstPage }) => milliseconds(firstPage))],
      ['console, search by user', ...consoles.map(({ search }) => milliseconds(search))],
      [`p99 of others while ${whole(plan.expiringSessions)} expire`, ...grown.map(one => milliseconds(one.expiry.p99))],
      ['memory of its own (RssAnon)', ...upwards.memory.map(({ anonymous }) => megabytes(anonymous))],
      ['… the largest started first', ...downwards.memory.map(({ anonymous }) => megabytes(anonymous))],
      ['memory with the mapped file (RSS)', ...upwards.memory.map(({ resident }) => megabytes(resident))],
      ['disk', ...disk.map(megabytes)],
    ]
    const orders = ['started last', 'started first']
    return {
      tables: [
        { title: 'How it grows with sessions', columns: ['sessions in sqlite', ...plan.storeSizes.map(whole)], rows },
      ],
      marks: [
        belowMark(`${largest}, memory of the process`, memory, MAX_MEMORY, megabytes),
        ...both.flatMap(({ compared }, index) => {
          const last = compared.at(-1)
          const what = `${largest}, checks, ${orders[index]}, of the rate with few`
          return last ? [shareMark(LEAST_SHARE, what, last)] : []
        }),
      ],
    }
  },
}

function checkRows(title: string, { rated, compared }: Measured): string[][] {
  const others = (say: (rate: Distribution) => string) =>
    compared.map(({ rate }, index) => (index === 0 ? '' : say(rate)))
  return [
    [title, ...rated.map(({ rates }) => whole(median(rates)))],
    ['… of the first', ...others(ratio)],
    ['… spread', ...others(spread)],
    ['… CPU', ...rated.map(({ cpu }) => microseconds(median(cpu)))],
  ]
}

/** Fills a store with all sessions except those that are visited. */
async function fill({ plan, cores, say }: Bench, size: number): Promise<Filled> {
  say(`making ${whole(size)} sessions`)
  const directory = join(folder, `sessions-${size}`)
  const sessions = size - visitedOf(plan, size)
  if (sessions > 0) await preload(cores, { directory, sessions, cookies: 0 })
  return { size, directory }
}

function visitedOf({ visitors }: Plan, size: number): number {
  return Math.min(size, visitors)
}

/** Starts a process for each, in the given order, and measures them side by side. */
async function measureAll(bench: Bench, provider: Served, filled: readonly Filled[]): Promise<Measured> {
  const { plan, say } = bench
  await using open = new AsyncDisposableStack()
  const grown: Grown[] = []
  for (const one of filled) grown.push(await grow(bench, open, provider, one))
  grown.sort((one, other) => one.size - other.size)
  say('checks')
  const rated = await contest(
    grown.map(({ menshen, cookies }) => contender(menshen, checkAt, cookies)),
    plan,
  )
  const [smallest] = rated
  if (!smallest) throw new Error('nothing was measured')
  say('memory, sign-ins and the console')
  const memory = grown.map(({ menshen }) => memoryOf(menshen.pid))
  const consoles = []
  for (const { menshen } of grown) consoles.push(await visitConsole(menshen))
  return { grown, rated, compared: rated.map(one => compare(one, smallest)), memory, consoles }
}

async function grow(
  { plan, cores, say }: Bench,
  open: AsyncDisposableStack,
  provider: Served,
  { size, directory }: Filled,
): Promise<Grown> {
  say(`${whole(size)} sessions`)
  const visited = visitedOf(plan, size)
  // Only now: sessions that are minutes old would be noted as seen, a write for each.
  const cookies = await preload(cores, { directory, sessions: visited })
  const menshen = open.use(await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores))
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
