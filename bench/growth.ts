// How Menshen grows with the sessions in its embedded store: start, rate, memory, disk, console.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { ask } from './answer.ts'
import { contest, median, ratio } from './contest.ts'
import { CLIENT_SECRET, type Menshen, signIn, startMenshen, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { memoryOf } from './process-memory.ts'
import { folder, runToEnd, type Served, script } from './processes.ts'
import { atLeast, type Findings, hundredths, megabytes, milliseconds, whole } from './report.ts'
import { ADMIN, userNumber } from './users.ts'
import type { Load } from './wrk.ts'

const DAY_SECONDS = 86_400
const CONSOLE = '/_menshen/console'
const CONSOLE_VISITS = 9
const LEAST_SHARE = 0.9
const MOST_MEMORY = 600e6

interface Grown {
  readonly size: number
  readonly directory: string
  readonly cookies: string
  readonly menshen: Menshen
}

export async function benchGrowth({ plan, cores, say }: Bench): Promise<Findings> {
  await using open = new AsyncDisposableStack()
  const provider = open.use(await startProvider(DAY_SECONDS))
  const grown: Grown[] = []
  for (const size of plan.storeSizes) {
    say(`making ${whole(size)} sessions`)
    const directory = join(folder, `sessions-${size}`)
    const cookies = join(folder, `cookies-${size}`)
    const command = script('preload.ts', directory, size, cookies, plan.activeUsers)
    await runToEnd(command, { on: cores.all, env: { CLIENT_SECRET } })
    const menshen = open.use(await startMenshen(`lmdb:${directory}`, provider, cores))
    grown.push({ size, directory, cookies, menshen })
  }

  const [fewest = 0] = plan.storeSizes
  say(`checks of ${whole(fewest)} users`)
  const few = await contest(
    grown.map(one => visitsOf(one, fewest)),
    plan,
  )
  say(`checks of up to ${whole(plan.activeUsers)} users`)
  const many = await contest(
    grown.map(one => visitsOf(one, plan.activeUsers)),
    plan,
  )
  say('the console')
  const consoles = await Promise.all(grown.map(({ menshen }) => visitConsole(menshen)))

  const memory = grown.map(({ menshen }) => memoryOf(menshen.pid))
  const disk = grown.map(({ directory }) => bytesIn(directory))
  const shares = (rates: number[][]) => rates.map(own => ratio(own, rates[0]))
  const rows = [
    ['start until ready', ...grown.map(({ menshen }) => milliseconds(menshen.startMs))],
    [`checks /s, ${whole(fewest)} users in turn`, ...few.map(rates => whole(median(rates)))],
    ['… ratio', ...shares(few).map(hundredths)],
    [`checks /s, up to ${whole(plan.activeUsers)} users in turn`, ...many.map(rates => whole(median(rates)))],
    ['… ratio', ...shares(many).map(hundredths)],
    ['memory of its own (RssAnon)', ...memory.map(({ anonymous }) => megabytes(anonymous))],
    ['memory with the mapped file (RSS)', ...memory.map(({ resident }) => megabytes(resident))],
    ['disk', ...disk.map(megabytes)],
    ['disk per session', ...grown.map(({ size }, index) => `${whole((disk[index] ?? 0) / size)} B`)],
    ['console, first page', ...consoles.map(({ firstPage }) => milliseconds(firstPage))],
    ['console, search by user', ...consoles.map(({ search }) => milliseconds(search))],
  ]
  const largest = `${whole(grown.at(-1)?.size ?? 0)} sessions`
  const { anonymous = 0, resident = 0 } = memory.at(-1) ?? {}
  return {
    table: { title: 'How it grows', columns: ['sessions in lmdb', ...plan.storeSizes.map(whole)], rows },
    marks: [
      {
        what: `${largest}, memory of the process`,
        demanded: `under ${megabytes(MOST_MEMORY)}`,
        measured: `${megabytes(anonymous)} (${megabytes(resident)} with the mapped file)`,
        met: anonymous < MOST_MEMORY,
      },
      atLeast(LEAST_SHARE, `${largest}, checks of ${whole(fewest)} users`, shares(few).at(-1) ?? 0),
      atLeast(LEAST_SHARE, `${largest}, checks of ${whole(plan.activeUsers)} users`, shares(many).at(-1) ?? 0),
    ],
  }
}

function visitsOf({ menshen, cookies }: Grown, users: number): Load {
  return { url: `${menshen.url}/_menshen/check`, lua: ['cookies.lua', cookies, String(users)] }
}

async function visitConsole(menshen: Served): Promise<{ firstPage: number; search: number }> {
  const cookie = await signIn(menshen, ADMIN)
  const firstPage = await timeOf(menshen.url + CONSOLE, cookie)
  const search = await timeOf(`${menshen.url}${CONSOLE}?username=${userNumber(7)}`, cookie)
  return { firstPage, search }
}

async function timeOf(url: string, cookie: string): Promise<number> {
  const times: number[] = []
  while (times.length < CONSOLE_VISITS) {
    const startedAt = performance.now()
    const { status } = await ask(url, cookie)
    if (status !== 200) throw new Error(`${url} answered ${status}`)
    times.push(performance.now() - startedAt)
  }
  return median(times)
}

function bytesIn(directory: string): number {
  const sizes = readdirSync(directory).map(name => statSync(join(directory, name)).blocks * 512)
  return sizes.reduce((sum, size) => sum + size, 0)
}
