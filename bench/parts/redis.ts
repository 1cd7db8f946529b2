// What a request, a sign-in and a refresh ask of Redis, and what it costs to notify others of a change: the costs that the
// simulation of larger installations uses.

import { inParallel } from '../in-parallel.ts'
import { ask } from '../measure/answer.ts'
import { cpuTimeOf } from '../measure/cpu-time.ts'
import type { Bench, Part } from '../part.ts'
import { kilobytes, microseconds } from '../report/words.ts'
import { type Menshen, signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { figuresOf } from '../servers/redis-figures.ts'
import { hasRedis, startRedis } from '../servers/stores.ts'
import { userNumber } from '../servers/users.ts'

type Redis = Awaited<ReturnType<typeof startRedis>>
/** The cost of one operation out of many. */
interface Cost {
  readonly menshen: number
  readonly redis: number
  readonly commands: number
  readonly received: number
  readonly sent: number
}

const AT_ONCE = 16
/** This many other processes know the sessions that change. */
const OTHERS = 3
const NOTHING_CACHED = { SESSION_CACHE_SIZE: '1' }
/** All of a day's tokens are due immediately. */
const ALWAYS_DUE = { REFRESH_LEAD_SECONDS: '86400' }

export const redis: Part = {
  async run(bench) {
    if (!hasRedis()) throw new Error('please install redis-server')
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const server = open.use(await startRedis())
    const start = async (more = {}) => open.use(await startMenshen(server.address, provider, bench.cores, more))
    const [usual, uncached, refreshing] = [await start(), await start(NOTHING_CACHED), await start(ALWAYS_DUE)]
    const users = Array.from({ length: bench.plan.redisUsers }, (_, n) => userNumber(n))
    const cookies: string[] = []
    const count = (
      what: string,
      menshen: Menshen,
      items: readonly string[],
      work: (item: string) => Promise<unknown>,
    ) => costOf(bench, server, what, menshen, items, work)
    const visit = (menshen: Menshen) => (cookie: string) => demand(menshen, cookie)

    const before = (await figuresOf(server)).memory
    const warmUp = cookies.slice()
    for (const user of users.slice(0, AT_ONCE * 4)) warmUp.push(await signIn(usual, user))
    const signedIn = await count('sign-ins', usual, users, async user => cookies.push(await signIn(usual, user)))
    const each = ((await figuresOf(server)).memory - before) / (users.length + warmUp.length)
    await count('a first visit', uncached, warmUp, visit(uncached))
    const cold = await count('checks that nobody has cached', uncached, cookies, visit(uncached))
    await count('a first visit', usual, cookies, visit(usual))
    const warm = await count('checks', usual, cookies, visit(usual))
    await count('a first refresh', refreshing, warmUp, visit(refreshing))
    await count('forgetting', refreshing, cookies, visit(refreshing))
    const alone = await count('refreshes', refreshing, cookies, visit(refreshing))
    const others = []
    for (let n = 0; n < OTHERS; n++) others.push(await start())
    for (const other of others) await count('others learn of them', other, cookies, visit(other))
    const told = await count('refreshes that others are told of', refreshing, cookies, visit(refreshing))
    const push = {
      redis: Math.max(0, told.redis - alone.redis) / OTHERS,
      sent: Math.max(0, told.sent - alone.sent) / OTHERS,
    }
    return {
      tables: [
        {
          title: 'What Redis does for it',
          columns: ['for one of', 'Menshen CPU', 'Redis CPU', 'commands', 'Redis receives', 'Redis sends'],
          rows: [
            cells('checks, cached', warm),
            cells('checks, not cached', cold),
            cells('sign-ins', signedIn),
            cells('refreshes', alone),
            [`invalidations, to one of ${OTHERS} others`, '', microseconds(push.redis), '', '', kilobytes(push.sent)],
          ],
        },
        { title: 'A session in Redis', columns: ['memory'], rows: [[kilobytes(each)]] },
      ],
      marks: [],
      costs: {
        ...named('check on redis, not cached', cold),
        ...named('sign-in on redis', signedIn),
        ...named('refresh on redis', alone),
        'invalidation, Redis µs': push.redis,
        'invalidation, bytes sent': push.sent,
        'session in Redis, bytes': each,
      },
    }
  },
}

async function costOf(
  { say }: Bench,
  redis: Redis,
  what: string,
  menshen: Menshen,
  items: readonly string[],
  work: (item: string) => Promise<unknown>,
): Promise<Cost> {
  say(`Redis: ${what}`)
  const [before, cpu] = [await figuresOf(redis), cpuTimeOf(menshen.pid)]
  await inParallel(items, AT_ONCE, work)
  const spent = cpuTimeOf(menshen.pid) - cpu
  const after = await figuresOf(redis)
  const each = (of: (figures: typeof before) => number) => (of(after) - of(before)) / items.length
  return {
    menshen: spent / items.length,
    redis: each(figures => figures.cpu),
    commands: each(({ commands }) => commands),
    received: each(({ received }) => received),
    sent: each(({ sent }) => sent),
  }
}

async function demand({ url }: Menshen, cookie: string): Promise<void> {
  const { status } = await ask(`${url}/_menshen/check`, cookie)
  if (status !== 200) throw new Error(`${url} answered ${status}`)
}

function cells(what: string, { menshen, redis, commands, received, sent }: Cost): string[] {
  return [what, microseconds(menshen), microseconds(redis), commands.toFixed(1), kilobytes(received), kilobytes(sent)]
}

function named(what: string, { menshen, redis, commands, received, sent }: Cost): Record<string, number> {
  return {
    [`${what}, CPU µs`]: menshen,
    [`${what}, Redis µs`]: redis,
    [`${what}, Redis commands`]: commands,
    [`${what}, bytes received`]: received,
    [`${what}, bytes sent`]: sent,
  }
}
