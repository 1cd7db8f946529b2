// What the day proves: tables for people, and sentences about what is not as it should be.

import type { ScriptedProvider } from '../../kit/scripted-provider.ts'
import type { Plan } from './plan.ts'
import { type DayRecord, type FaultRun, isQuiet, quantile, recoverySeconds, type Sample } from './record.ts'
import type { Site } from './site.ts'
import type { Promises } from './users.ts'

interface Verdict {
  readonly table: string
  readonly problems: readonly string[]
}

const SLOWER_AT_MOST = 2
/**
 * How much more there may be at the end than at the beginning: a share, and what does not matter. Of memory the lowest tenth counts:
 * what is left after a garbage collection.
 */
const LEVELS = {
  memory: { quantile: 0.1, share: 0.25, slack: 15e6, unit: 1e6, name: 'memory, MB' },
  descriptors: { quantile: 0.5, share: 0.1, slack: 20, unit: 1, name: 'descriptors' },
  store: { quantile: 0.5, share: 0.25, slack: 500e3, unit: 1e6, name: 'store, MB' },
} as const
/** How long before a kill or a failover something can have been in flight. */
const IN_FLIGHT_SECONDS = 3
/** How long lines of the audit file wait at most after a disk was full. */
const LONGEST_AUDIT_WAIT_SECONDS = 30

export function tellFault(fault: FaultRun): string {
  return `${fault.began.toFixed(0)} s: ${fault.name} (${fault.site}), errors: ${errorsOf([fault])}`
}

export function faultTable({ faults }: DayRecord): string {
  const names = [...new Set(faults.map(({ name }) => name))].sort()
  const rows = names.map(name => {
    const runs = faults.filter(fault => fault.name === name)
    const recoveries = runs.map(recoverySeconds)
    const [median, longest] = [quantile(recoveries, 0.5), Math.max(...recoveries)]
    return [name, String(runs.length), errorsOf(runs), `${median.toFixed(1)} s`, `${longest.toFixed(1)} s`]
  })
  return toTable([['fault', 'times', 'errors during it', 'recovered after', 'at most'], ...rows])
}

function errorsOf(runs: readonly FaultRun[]): string {
  const kinds = new Map<string, number>()
  for (const { errors } of runs) for (const [kind, count] of errors) kinds.set(kind, (kinds.get(kind) ?? 0) + count)
  return [...kinds].map(([kind, count]) => `${count} × ${kind}`).join(', ') || 'none'
}

/** How long pages took when the day was quiet, between the faults, and during them. */
export function judgePages({ answers, faults }: DayRecord, plan: Plan): Verdict {
  const pages = answers.filter(({ isPage, began }) => isPage && began > plan.warmedUp)
  const isCalmPhase = (at: number) => at < plan.firstFault || at > Math.max(plan.lastFault, faults.at(-1)?.over ?? 0)
  const parts = Object.groupBy(pages, ({ began, ended }) =>
    isCalmPhase(began) ? 'quiet' : isQuiet(faults, began, ended) ? 'between the faults' : 'during faults',
  )
  const figures = Object.entries(parts).map(([name, list]) => {
    const times = list.map(({ began, ended }) => (ended - began) * 1000)
    return { name, count: times.length, p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
  })
  const p99Of = (name: string) => figures.find(figure => figure.name === name)?.p99 ?? Number.NaN
  const [quiet, between] = [p99Of('quiet'), p99Of('between the faults')]
  const isFine = between <= quiet * SLOWER_AT_MOST
  const rows = figures.map(({ name, count, p50, p99 }) => [
    name,
    String(count),
    `${p50.toFixed(1)} ms`,
    `${p99.toFixed(1)} ms`,
  ])
  return {
    table: toTable([['pages', 'answers', 'p50', 'p99'], ...rows]),
    problems: isFine
      ? []
      : [`p99 between the faults is ${between.toFixed(1)} ms, and ${quiet.toFixed(1)} ms when it is quiet`],
  }
}

/** What was held in the quiet moments of the first quarter, after the warm-up, and of the last. */
export function judgeLevels({ samples, faults }: DayRecord, plan: Plan): Verdict {
  const problems: string[] = []
  const rows: string[][] = []
  const quiet = samples.filter(({ at }) => at > plan.warmedUp && isQuiet(faults, at, at))
  for (const site of new Set(samples.map(sample => sample.site)))
    for (const what of ['memory', 'descriptors', 'store'] as const) {
      const { quantile: counted, share, slack, unit, name } = LEVELS[what]
      const levelOf = (isThen: (sample: Sample) => boolean) =>
        quantile(
          quiet.filter(sample => sample.site === site && isThen(sample) && sample[what] > 0).map(one => one[what]),
          counted,
        )
      const first = levelOf(({ at }) => at < plan.end * 0.25)
      const last = levelOf(({ at }) => at > plan.end * 0.75)
      const most = first * (1 + share) + slack
      const show = (value: number) => (value / unit).toFixed(unit === 1 ? 0 : 1)
      rows.push([`${site}: ${name}`, show(first), show(last), show(most)])
      if (!(last <= most)) problems.push(`${site}: ${name} went from ${show(first)} to ${show(last)}`)
    }
  return { table: toTable([['', 'first quarter', 'last quarter', 'at most'], ...rows]), problems }
}

interface Evidence {
  readonly record: DayRecord
  readonly promises: Promises
  readonly sites: readonly Site[]
  readonly provider: ScriptedProvider
}

/**
 * Sessions that ended, refresh tokens that were used twice, lines of the audit file and workers that died. A refresh that a kill or
 * a failover meets between the provider's answer and the store costs its session: that is documented, and the only excuse.
 */
export function judgeLosses({ record, promises, sites, provider }: Evidence): Verdict {
  const interruptions = record.faults.filter(({ name }) => /kill|failover/i.test(name))
  const isInFlight = (at: number) =>
    interruptions.some(({ began }) => at > began - IN_FLIGHT_SECONDS && at < began + 0.2)
  const problems: string[] = []

  const started = performance.timeOrigin + performance.now() - record.now() * 1000
  const refreshes = Map.groupBy(provider.callsTo('refresh'), ({ form }) => form.get('refresh_token'))
  const interrupted = [...refreshes.values()].filter(
    ([first, second]) => second && first && isInFlight((first.at - started) / 1000),
  ).length
  const { lost } = promises
  if (lost.length > interrupted)
    problems.push(
      `${lost.length} were signed out, and ${interrupted} refreshes were interrupted: ${JSON.stringify(lost.map(({ user, at }) => [user, at]))}`,
    )
  if (provider.reuses > interrupted) problems.push(`${provider.reuses} refresh tokens were used again`)

  for (const site of sites) {
    const audited = site.auditedUsers()
    const isSure = (at: number) => !couldLoseLines(record.faults, site, at)
    const missing = promises.signIns.filter(one => one.site === site && isSure(one.at) && !audited.has(one.user))
    if (missing.length > 0)
      problems.push(
        `${site.name}: not in the audit files: ${missing.map(({ user, at }) => `${user} at ${at}`).join(', ')}`,
      )
    const kills = record.faults.filter(
      fault => fault.name.startsWith('worker killed') && fault.site === site.name,
    ).length
    if (site.deaths() !== kills) problems.push(`${site.name}: ${site.deaths()} workers died, and ${kills} were killed`)
  }
  const done = Object.entries(promises.counts).map(([action, count]) => `${count} × ${action}`)
  const rows = [
    ['done', done.join(', ')],
    ['refreshes', `${provider.callsTo('refresh').length} calls, ${provider.reuses} tokens used again`],
    ['signed out by a refresh that a kill interrupted', String(lost.length)],
  ]
  return { table: toTable([['', ''], ...rows]), problems }
}

/** Lines wait in memory for a moment, and while the disk is full for longer; a kill loses them. */
function couldLoseLines(faults: readonly FaultRun[], site: Site, at: number): boolean {
  const isDiskFull = faults.some(({ name, began, over }) => /disk|writes/.test(name) && began < at && at < over)
  const patience = isDiskFull ? LONGEST_AUDIT_WAIT_SECONDS : IN_FLIGHT_SECONDS
  return faults.some(
    ({ name, site: where, began }) => /kill/i.test(name) && where === site.name && at < began && began < at + patience,
  )
}

function toTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, n) => Math.max(...rows.map(row => row[n]?.length ?? 0))) ?? []
  const lines = rows.map(row => `| ${row.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join(' | ')} |`)
  return [lines[0], `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`, ...lines.slice(1)].join('\n')
}
