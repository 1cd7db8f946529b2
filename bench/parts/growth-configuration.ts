// How Menshen grows with its configuration: rules, applications behind it, identity providers. Each against the smallest.

import { type Contender, compare, contender, contest, type Rated } from '../measure/contest.ts'
import { checkAt } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Findings } from '../report/findings.ts'
import { microseconds, milliseconds, ratio, shareMark, spread, whole } from '../report/words.ts'
import { manyProviders, manyRules, writeConfiguration } from '../servers/configuration.ts'
import { type Menshen, signIn, signInBy, startMenshen, startProvider } from '../servers/menshen.ts'
import { type Served, startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const LEAST = 0.95
const FROM_CONFIGURATION = { AUTH_URL: '', CLIENT_ID: '', CLIENT_SECRET: '' }

export const rules: Part = {
  async run(bench) {
    const { plan } = bench
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const settings = plan.rules.map(count => ({ CONFIG: writeConfiguration({ rules: manyRules(count) }) }))
    const servers = await startEach(bench, open, provider, settings)
    bench.say(`checks with ${plan.rules.map(whole).join(', ')} rules`)
    const contenders = await Promise.all(servers.map(async one => contender(one, checkAt, [await signIn(one, 'user')])))
    return report('rules', plan.rules, servers, await contest(contenders, plan))
  },
}

export const upstreams: Part = {
  async run(bench) {
    const { plan } = bench
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const upstream = open.use(await startScript('upstream.ts', []))
    const counts = [1, plan.upstreams]
    const settings = counts.map(count => ({
      TRUSTED_PROXIES: '',
      UPSTREAM: upstream.url,
      CONFIG: writeConfiguration({
        upstreams: Object.fromEntries(Array.from({ length: count }, (_, n) => [`/application-${n}`, upstream.url])),
      }),
    }))
    const servers = await startEach(bench, open, provider, settings)
    bench.say(`pages of ${counts.map(whole).join(', ')} applications`)
    const contenders: Contender[] = []
    for (const [index, server] of servers.entries()) {
      const path = `/application-${(counts[index] ?? 1) - 1}/1KB`.padEnd('/application-000/1KB'.length, '?')
      contenders.push(contender(server, base => ({ url: base + path }), [await signIn(server, 'user')]))
    }
    return report('applications', counts, servers, await contest(contenders, plan))
  },
}

export const providers: Part = {
  async run(bench) {
    const { plan } = bench
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const settings = plan.providers.map(count => ({
      ...FROM_CONFIGURATION,
      CONFIG: writeConfiguration({ providers: manyProviders(count, provider.url) }),
    }))
    const servers = await startEach(bench, open, provider, settings)
    bench.say(`checks with ${plan.providers.map(whole).join(', ')} providers`)
    const contenders: Contender[] = []
    for (const [index, server] of servers.entries()) {
      const cookie = await signInBy(server, 'user', `provider${(plan.providers[index] ?? 1) - 1}`)
      contenders.push(contender(server, checkAt, [cookie]))
    }
    return report('providers', plan.providers, servers, await contest(contenders, plan))
  },
}

async function startEach(
  { cores }: Bench,
  open: AsyncDisposableStack,
  provider: Served,
  settings: readonly Readonly<Record<string, string>>[],
): Promise<Menshen[]> {
  const servers: Menshen[] = []
  for (const more of settings) {
    const store = open.use(await openSqlite())
    servers.push(open.use(await startMenshen(store.address, provider, cores, more)))
  }
  return servers
}

function report(
  what: string,
  sizes: readonly number[],
  servers: readonly Menshen[],
  rated: readonly Rated[],
): Findings {
  const [first] = rated
  if (!first) throw new Error('nothing was measured')
  const others = rated.slice(1).map(one => compare(one, first))
  const last = others.at(-1)
  return {
    tables: [
      {
        title: `How it grows with ${what}`,
        columns: [what, ...sizes.map(whole)],
        rows: [
          ['requests /s', ...rated.map(({ rates }) => whole(median(rates)))],
          ['… of the first', '', ...others.map(({ rate }) => ratio(rate))],
          ['… spread', '', ...others.map(({ rate }) => spread(rate))],
          ['CPU', ...rated.map(({ cpu }) => microseconds(median(cpu)))],
          ['start until ready', ...servers.map(({ startMs }) => milliseconds(startMs))],
        ],
      },
    ],
    marks: last
      ? [shareMark(LEAST, `${whole(sizes.at(-1) ?? 0)} ${what}, of the rate with ${whole(sizes[0] ?? 0)}`, last)]
      : [],
  }
}
