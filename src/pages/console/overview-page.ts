// The console's first page: what is wrong now, in sentences, and then the plots.
import { html } from 'hono/html'
import type { Finding } from '../../observe/doctor/finding.ts'
import type { Problem } from '../../observe/problems.ts'
import { RANGES, type Range } from '../../observe/series/history.ts'
import { type Plot, sumOf } from '../../observe/series/plot.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import type { AdviceCode } from '../../settings/advice.ts'
import type { Html } from '../layout.ts'
import { moment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame } from './console-frame.ts'
import { cell, row, table } from './table.ts'

export interface OverviewView {
  readonly range: Range
  readonly plot: Plot
  readonly isStoreAway: boolean
  readonly problems: readonly Problem[]
  /** By their ids. */
  readonly providerNames: ReadonlyMap<string, string | undefined>
  /** What a developer should know about how it runs. */
  readonly advice: readonly AdviceCode[]
  /** What the doctor has found. */
  readonly failures: readonly Finding[]
}

const PLOTS = ['signIns', 'sessions', 'requests', 'times'] as const

export function overviewPage(words: Words, view: OverviewView): string {
  const { t } = words
  return consoleFrame(words, {
    section: 'overview',
    scripts: ['overview.js'],
    styles: ['uplot.css'],
    body: html`<section id="problems" aria-live="polite">${problemList(words, view)}</section>
<div id="figures">${figures(words, view.plot)}</div>
<p class="ranges" aria-label="${t('overview.range')}">${(Object.keys(RANGES) as Range[]).map(range => rangeLink(words, range, view.range))}</p>
<div id="plots" data-live="${OWN_PATHS.consoleLive}?range=${view.range}" data-words="${plotWords(words)}">
${PLOTS.map(name => html`<figure><figcaption>${t(`overview.plot_${name}`)}</figcaption><div class="plot" id="plot-${name}"></div></figure>`)}
</div>
<details><summary>${t('overview.numbers')}</summary>${numbers(words, view.plot)}</details>`,
  })
}

/** The worst first; whatever is only advice stands last. */
export function problemList(words: Words, view: OverviewView): Html {
  const { t, say, checkLabel } = words
  const { problems, failures, advice, isStoreAway } = view
  const bad = [
    ...(isStoreAway ? [html`${t('problem.store_away')}`] : []),
    ...problems.map(problem => problemSentence(words, problem, view)),
    ...failures.map(({ name, seen }) => html`<strong>${checkLabel(name)}</strong> ${say(seen)}`),
  ]
  if (bad.length + advice.length === 0) return html`<div class="notice good"><p>${t('health.all_good')}</p></div>`
  return html`${bad.map(sentence => html`<div class="notice bad"><p>${sentence}</p></div>`)}
${advice.map(code => html`<div class="notice"><p>${t(`advice.${code}`)}</p></div>`)}`
}

function problemSentence(words: Words, problem: Problem, { providerNames }: OverviewView): Html {
  const { rich, t } = words
  if (problem.kind === 'event') return html`${t(`problem.${problem.code}`, { times: problem.times })}`
  const provider = html`<strong>${providerNames.get(problem.provider) ?? t('login.provider')}</strong>`
  const failures = html`${problem.failures}`
  if (problem.kind === 'recovered')
    return rich('problem.recovered', { provider, failures, until: moment(words, problem.until) })
  const people = html`${problem.people}`
  return rich('problem.provider', { provider, failures, people, since: moment(words, problem.since) })
}

/** The sums of what is plotted. */
export function figures({ t }: Words, plot: Plot): Html {
  const failed = Object.values(plot.failures).reduce((sum, column) => sum + sumOf(column), 0)
  const rows = [
    [t('overview.sessions_now'), plot.sessions.findLast(number => number !== null) ?? '—'],
    [t('overview.sign_ins'), sumOf(plot.signIns)],
    [t('overview.failures'), failed],
    [t('overview.refusals'), sumOf(plot.requests.refused)],
  ]
  return html`<dl class="figures">${rows.map(([name, number]) => html`<div><dt>${name}</dt><dd>${number}</dd></div>`)}</dl>`
}

function rangeLink({ t }: Words, range: Range, current: Range) {
  const chosen = range === current ? html`aria-current="true"` : ''
  return html`<a class="button small quiet" href="${OWN_PATHS.console}?range=${range}" ${chosen}>${t(`overview.${range}`)}</a> `
}

/** What the plots call their lines. */
function plotWords({ t }: Words): string {
  return new URLSearchParams({
    signIns: t('overview.sign_ins'),
    failed: t('overview.failed_for'),
    sessions: t('overview.sessions_now'),
    admitted: t('overview.admitted'),
    visitor: t('overview.visitors'),
    refused: t('overview.refusals'),
    error: t('overview.errors'),
    request: t('overview.of_requests'),
    provider: t('overview.of_provider'),
    store: t('overview.of_store'),
    time: t('overview.time'),
  }).toString()
}

function numbers(words: Words, plot: Plot): Html {
  const { t } = words
  const columns = [
    t('overview.time'),
    t('overview.sign_ins'),
    t('overview.failures'),
    t('overview.admitted'),
    t('overview.refusals'),
    t('overview.errors'),
  ]
  const failures = Object.values(plot.failures)
  const cells = (n: number) => [
    plot.signIns[n],
    failures.reduce((sum, column) => sum + (column[n] ?? 0), 0),
    plot.requests.admitted[n],
    plot.requests.refused[n],
    plot.requests.error[n],
  ]
  const rows = plot.at.map((at, n) =>
    row(
      moment(words, at * 1000),
      cells(n).map((number, place) => cell(columns[place + 1] ?? '', number)),
    ),
  )
  return table({ label: { text: t('overview.numbers') }, columns, rows: rows.reverse() })
}
