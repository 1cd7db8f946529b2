// The overview of the console: problems, tiles and charts, also live.

import { hash } from 'node:crypto'
import { html } from 'hono/html'
import { type Advice, adviceFor } from '../config/advice.ts'
import type { Finding } from '../doctor/finding.ts'
import { MenshenError } from '../errors.ts'
import type { AuditedCode } from '../events.ts'
import { languageOf, pageAnswer, redirectAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { AUDITED } from '../observe/audit-event.ts'
import { type Column, FAILURE_REASONS, type History, type Plot, plotOf, sumOf } from '../observe/history.ts'
import { RANGES, type Range, type Slot, TIMED } from '../observe/history-slots.ts'
import { type AlarmEvent, type CurrentProblem, currentProblems } from '../observe/problems.ts'
import { icon } from '../pages/icon.ts'
import { exactMoment, type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { GuardedHandler } from '../sign-in/guarded.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { type CachedValue, createCachedValue } from '../util/cached-value.ts'
import { auditUrl } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { banner, consoleFrame, type Viewer, viewerOf } from './frame.ts'
import type { LiveStreams } from './live-streams.ts'
import { type Column as TableColumn, table } from './table.ts'

export interface Overview {
  readonly show: GuardedHandler<ConsoleContext>
  /** GET /_menshen/console/live: the sentences and plots, as they change. */
  readonly stream: GuardedHandler<ConsoleContext>
}

/** The trail is read once within this time, however many users are looking. */
const FRESH_MS = 4000

export function createOverview(context: ConsoleContext, liveStreams: LiveStreams): Overview {
  const fresh = (range: Range) =>
    createCachedValue({ load: () => makeView(context, range), freshMs: FRESH_MS, now: context.now })
  const views: Record<Range, CachedValue<OverviewView>> = {
    hour: fresh('hour'),
    day: fresh('day'),
    week: fresh('week'),
  }

  return {
    async show({ pages }, request, caller) {
      const { cookies } = caller
      // The list of sessions used to have this address, which may be in a bookmark.
      if (new URLSearchParams(request.search).has('username'))
        return redirectAnswer(pages, request.method, OWN_PATHS.consoleSessions + request.search, { cookies })
      const view = await views[rangeOf(request)].get()
      return pageAnswer(pages, overviewPage(languageOf(pages, request), viewerOf(caller), view), { cookies })
    },

    async stream(context, request, caller) {
      const words = languageOf(context.pages, request)
      const range = rangeOf(request)
      return liveStreams.open(context, request, caller, async () => {
        const view = await views[range].get()
        return [
          ['state', String(stateBanner(words, view))],
          ['problems', String(problemList(words, view))],
          ['advice', String(adviceList(words, view.advice))],
          ['figures', String(figures(words, view))],
          ['plot', view.plot],
        ]
      })
    },
  }
}

const HOUR_MS = 3_600_000
/** Events that show whether users can sign in and stay signed in. */
const SIGN_IN_EVENTS = ['sign_in', 'sign_in_failed', 'session_refresh_failed']
/** How many events of each code are read. */
const MAX_EVENTS_PER_CODE = 1000

function rangeOf({ search }: GatewayRequest): Range {
  const wanted = new URLSearchParams(search).get('range') ?? ''
  return Object.hasOwn(RANGES, wanted) ? (wanted as Range) : 'hour'
}

async function makeView(context: ConsoleContext, range: Range): Promise<OverviewView> {
  const { settings, auth, observe, doctor } = context
  const { providers, roles } = auth
  const [{ slots, isPartial }, lastHour, { events, isStoreUnavailable }, before] = await Promise.all([
    observe.history.read(range),
    observe.history.read('hour'),
    recentEvents(context),
    readBefore(observe.history, range),
  ])
  return {
    range,
    plot: plotOf(slots),
    before: before && plotOf(before),
    isStoreUnavailable: isPartial || isStoreUnavailable,
    problems: currentProblems(events, lastHour.slots),
    providerNames: new Map(providers.all.map(({ plan }) => [plan.id, plan.label])),
    advice: adviceFor(
      settings,
      providers.all.map(({ plan }) => plan),
      roles,
    ),
    failures: doctor.findings.latest().filter(({ level }) => level === 'failure'),
  }
}

/** The hour and the day before are available in longer slots; the week before is not kept. */
const PREVIOUS_RANGE = { hour: 'day', day: 'week' } as const

/** The slots of the period before a range, which is as long as the range; `undefined` if nothing was counted then. */
async function readBefore(history: History, range: Range): Promise<Slot[] | undefined> {
  if (range === 'week') return undefined
  const { slots } = await history.read(PREVIOUS_RANGE[range])
  const count = (RANGES[range].stepMs * RANGES[range].slots) / RANGES[PREVIOUS_RANGE[range]].stepMs
  const before = slots.slice(-2 * count, -count)
  return before.some(({ counts }) => Object.keys(counts).length > 0) ? before : undefined
}

/** While the store is unavailable, other problems are still shown. */
async function recentEvents({ observe, now }: ConsoleContext) {
  try {
    const since = now() - HOUR_MS
    // Each code separately, so that a flood of one does not hide another.
    const pages = await Promise.all(
      SIGN_IN_EVENTS.map(event => observe.auditTrail.find({ event, since, limit: MAX_EVENTS_PER_CODE })),
    )
    return { events: pages.flatMap(({ events }) => events), isStoreUnavailable: false }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return { events: [], isStoreUnavailable: true }
  }
}

// The page: current problems in sentences, then the plots.

export interface OverviewView {
  readonly range: Range
  readonly plot: Plot
  /** The period before it, if known. */
  readonly before: Plot | undefined
  readonly isStoreUnavailable: boolean
  readonly problems: readonly CurrentProblem[]
  /** Keyed by their ids. */
  readonly providerNames: ReadonlyMap<string, Phrase | undefined>
  /** Risky settings that a developer should know about. */
  readonly advice: readonly Advice[]
  /** What the doctor has found. */
  readonly failures: readonly Finding[]
}

const PLOTS = ['signIns', 'sessions', 'requests', 'times'] as const

export function overviewPage(words: Words, viewer: Viewer, view: OverviewView): string {
  const { t } = words
  return consoleFrame(words, {
    section: 'overview',
    viewer,
    scripts: viewer.isUnconfirmed ? [] : ['overview.js'],
    styles: ['uplot.css'],
    body: html`<div id="state" aria-live="polite">${stateBanner(words, view)}</div>
<div id="figures">${figures(words, view)}</div>
<section id="problems" aria-live="polite">${problemList(words, view)}</section>
<div id="advice">${adviceList(words, view.advice)}</div>
<div class="ranges" role="group" aria-label="${t('overview.range')}">${(Object.keys(RANGES) as Range[]).map(range => rangeLink(words, range, view.range))}</div>
${viewer.isUnconfirmed ? '' : plotsPart(words, view)}
<details ${viewer.isUnconfirmed ? html`open` : ''}><summary>${t('overview.numbers')}</summary>${numbers(words, view.plot)}</details>`,
  })
}

/** A stream fills the plots; it ends with a session that cannot be confirmed. */
function plotsPart(words: Words, { range }: OverviewView): Html {
  const { t } = words
  return html`<div id="plots" data-live="${OWN_PATHS.consoleLive}?range=${range}" data-words="${plotWords(words)}">
${PLOTS.map(name => html`<figure><figcaption>${t(`overview.plot_${name}`)}</figcaption><div class="plot" id="plot-${name}"></div></figure>`)}
</div>`
}

/** The overall state in one line. */
function stateBanner(words: Words, view: OverviewView): Html {
  const { t } = words
  const severities = problemCards(words, view).map(({ severity }) => severity)
  const count = (severity: Severity) => severities.filter(other => other === severity).length
  const failing = count('down') + count('degraded')
  const recovered = count('recovered')
  const state = count('down') > 0 ? 'down' : failing > 0 ? 'degraded' : 'good'
  const more = [
    ...(failing > 0 ? [t('overview.problems', { count: failing })] : []),
    ...(recovered > 0 ? [t('overview.recovered', { count: recovered })] : []),
  ]
  return banner(state, t(`overview.state_${state}`), more.join(' '))
}

/** The worst problems come first. One failure is one card, however many checks have found it. */
export function problemList(words: Words, view: OverviewView): Html {
  return html`${problemCards(words, view).map(card => problemCard(words, card))}`
}

function problemCard(words: Words, card: ProblemCard): Html {
  const { t } = words
  const { severity, message, details = [], audit } = card
  return html`<article class="problem ${severity}"><p><span class="tag ${severity}">${icon(SEVERITY_ICONS[severity])} ${t(`overview.severity_${severity}`)}</span> ${message}</p>
${details.length === 0 ? '' : html`<ul class="facts">${details.map(detail => html`<li>${detail}</li>`)}</ul>`}
${cause(words, card)}
${audit === undefined ? '' : html`<p class="small"><a href="${audit}">${t('overview.see_audit')}</a></p>`}</article>`
}

/** Folded, because nothing fails because of it. A script lets the reader dismiss each piece of advice until it changes. */
export function adviceList({ t, render }: Words, advice: readonly Advice[]): Html {
  if (advice.length === 0) return html``
  const lines = advice.map(
    (
      { code, remedy },
      n,
    ) => html`<li data-advice="${fingerprintOf(code, remedy)}"><p>${render(phrase('with_remedy', { seen: phrase(`advice.${code}`), remedy }))}</p>
<button type="button" class="button small quiet dismiss" aria-label="${t('overview.dismiss_label', { number: n + 1 })}" hidden>${t('overview.dismiss')}</button></li>
`,
  )
  return html`<details class="advice"><summary>${t('overview.advice')} <span class="tag">${advice.length}</span></summary>
<ul>${lines}</ul></details>
<p class="small" id="dismissed" hidden>${t('overview.dismissed')} <button type="button" class="plain">${t('overview.show_again')}</button></p>`
}

/** Changes with the content of the advice, but not with the language. */
function fingerprintOf(code: string, remedy: Phrase): string {
  return hash('sha256', JSON.stringify([code, remedy]), 'base64url').slice(0, 16)
}

/** `notice`: any visitor can cause it, and users are not necessarily affected. */
type Severity = 'down' | 'degraded' | 'notice' | 'recovered'

const SEVERITIES: readonly Severity[] = ['down', 'degraded', 'notice', 'recovered']
const SEVERITY_ICONS = { down: 'failure', degraded: 'warning', notice: 'info', recovered: 'success' } as const

interface ProblemCard {
  readonly severity: Severity
  /** The subject: the beginning of the names of the doctor's checks. */
  readonly about: string | undefined
  readonly message: Html
  /** Since when, how often, for how many. */
  readonly details?: readonly Html[]
  /** The address of its events in the audit trail. */
  readonly audit?: string
  /** The doctor's findings about it. */
  readonly findings: readonly Finding[]
}

function problemCards(words: Words, view: OverviewView): ProblemCard[] {
  const { problems, failures, isStoreUnavailable } = view
  const seen = problems
    // The first card already reports it.
    .filter(problem => !(isStoreUnavailable && problem.kind === 'event' && SUBJECTS[problem.code] === 'store'))
    .map(problem => ({
      severity: severityOf(problem, view),
      about: subjectOf(problem, view),
      message: problemMessage(words, problem, view),
      details: detailsOf(words, problem),
      audit: auditOf(problem),
    }))
  const away = { severity: 'down' as const, about: 'store', message: html`${words.t('problem.store_away')}` }
  const known = [...(isStoreUnavailable ? [away] : []), ...seen]
  const shown = new Set<Finding>()
  const cards = known.map(card => {
    const findings = failures.filter(finding => !shown.has(finding) && isAbout(finding, card.about))
    for (const finding of findings) shown.add(finding)
    return { ...card, severity: confirmed(card, findings), findings }
  })
  const rest = Map.groupBy(
    failures.filter(finding => !shown.has(finding)),
    ({ name }) => areaOf(name, view),
  )
  const found = [...rest].flatMap(([about, [first, ...others]]) => {
    const card = { severity: 'degraded' as const, about, message: html`` }
    return first
      ? [{ ...card, severity: confirmed(card, [first]), message: findingMessage(words, first), findings: others }]
      : []
  })
  return [...cards, ...found].sort(
    (one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity),
  )
}

/** Events that any visitor can cause. */
const VISITOR_EVENTS = new Set<AlarmEvent>(['rate_limited', 'cookie_lost'])

function severityOf(problem: CurrentProblem, { problems, providerNames }: OverviewView): Severity {
  if (problem.kind === 'recovered') return 'recovered'
  if (problem.kind === 'event') {
    if (problem.isOver) return 'recovered'
    return VISITOR_EVENTS.has(problem.code) ? 'notice' : problem.code === 'data_keys_closed' ? 'down' : 'degraded'
  }
  const failing = problems.filter(({ kind }) => kind === 'provider').length
  return failing >= providerNames.size ? 'down' : 'degraded'
}

/** The severity given the checks that fail now: a quiet problem is not over, and without the application of `/` nothing works. */
function confirmed({ severity }: Pick<ProblemCard, 'severity'>, findings: readonly Finding[]): Severity {
  if (findings.length === 0) return severity
  if (findings.some(({ name }) => name === 'upstream /' || name.startsWith('upstream / '))) return 'down'
  return severity === 'recovered' ? 'degraded' : severity
}

function detailsOf(words: Words, problem: CurrentProblem): Html[] {
  const { rich, t } = words
  const since = rich('problem.since', { time: exactMoment(words, problem.since) })
  if (problem.kind === 'event') {
    const last = rich('problem.last', { time: exactMoment(words, problem.last) })
    return problem.last === problem.since ? [since] : [since, last]
  }
  return [
    since,
    ...(problem.kind === 'recovered' ? [rich('problem.until', { time: exactMoment(words, problem.until) })] : []),
    html`${t('problem.failures', { count: problem.failures })}`,
    html`${t('problem.people', { count: problem.people })}`,
  ]
}

/** If the trail does not record the event, links to all events since the problem began. */
function auditOf(problem: CurrentProblem): string {
  const event = problem.kind === 'event' ? problem.code : problem.event
  const isInTrail = AUDITED.some(code => code === event)
  return auditUrl({ ...(isInTrail && { event }), ...sinceIn(problem.since) }, OWN_PATHS.consoleAudit)
}

const SUBJECTS: Partial<Record<AlarmEvent, string>> = {
  store_unreachable: 'store',
  store_not_writable: 'store',
  upstream_failed: 'upstream',
  upstream_head_too_large: 'upstream',
  upstream_busy: 'upstream',
}

function subjectOf(problem: CurrentProblem, { providerNames }: OverviewView): string | undefined {
  if (problem.kind === 'event') return SUBJECTS[problem.code]
  if (problem.kind === 'recovered') return undefined
  return providerNames.size > 1 ? `provider ${problem.provider}` : 'provider'
}

function isAbout({ name }: Finding, about: string | undefined): boolean {
  if (about === undefined) return false
  return name === about || name.startsWith(`${about} `) || (about === 'store' && name.startsWith('redis'))
}

/** `provider staff client` is about the provider staff, `upstream /api dns` about that application. */
function areaOf(name: string, { providerNames }: OverviewView): string {
  const [area = '', which = ''] = name.split(' ')
  if (area === 'redis') return 'store'
  return area === 'upstream' || (area === 'provider' && providerNames.has(which)) ? `${area} ${which}` : area
}

/** The first finding is the cause of the others. Without a finding, links to Health, which looks for the cause. */
function cause(words: Words, { severity, about, findings: [first, ...others] }: ProblemCard): Html | string {
  const { rich } = words
  const health = html`<a href="${OWN_PATHS.consoleHealth}">${words.t('console.health')}</a>`
  if (!first)
    return about === undefined || severity === 'recovered'
      ? ''
      : html`<p class="small">${rich('problem.cause', { health })}</p>`
  return html`<p class="small">${findingMessage(words, first)}${others.length === 0 ? '' : html` ${rich('problem.more', { count: html`${others.length}`, health })}`}</p>`
}

function findingMessage({ render, checkLabel }: Words, { name, seen, remedy }: Finding): Html {
  return html`<strong>${checkLabel(name)}</strong> ${render(seen)}${remedy ? html`<br>${render(remedy)}` : ''}`
}

function problemMessage(words: Words, problem: CurrentProblem, { providerNames }: OverviewView): Html {
  const { render, rich, t } = words
  if (problem.kind === 'event') return html`${t(`problem.${problem.code}`, { times: problem.times })}`
  const name = providerNames.get(problem.provider)
  const provider = html`<strong>${name ? render(name) : t('topic.provider')}</strong>`
  return problem.kind === 'recovered' ? rich('problem.recovered', { provider }) : rich('problem.provider', { provider })
}

/** The sums of the plots with their trends, each with a link to what it counts. */
export function figures(
  words: Words,
  view: Pick<OverviewView, 'plot' | 'before' | 'isStoreUnavailable' | 'range'>,
): Html {
  const { t } = words
  const { plot, before, isStoreUnavailable } = view
  const eventsOf = (event: AuditedCode) =>
    auditUrl({ event, ...(plot.at[0] !== undefined && sinceIn(plot.at[0] * 1000)) }, OWN_PATHS.consoleAudit)
  const counted = (name: string, columnOf: (plot: Plot) => Column, url: string) => ({
    name,
    number: sumOf(columnOf(plot)),
    column: columnOf(plot),
    change: before && sumOf(columnOf(plot)) - sumOf(columnOf(before)),
    url,
  })
  const known = plot.sessions.filter(number => number !== null)
  const [now, then] = [known.at(-1), known[0]]
  const rows = [
    {
      name: t('overview.sessions_now'),
      number: isStoreUnavailable ? t('overview.unavailable') : (now ?? '—'),
      column: plot.sessions,
      change:
        isStoreUnavailable || known.length < 2 || now === undefined || then === undefined ? undefined : now - then,
      url: OWN_PATHS.consoleSessions,
    },
    counted(t('overview.sign_ins'), ({ signIns }) => signIns, eventsOf('sign_in')),
    counted(t('overview.failures'), failuresIn, eventsOf('sign_in_failed')),
    counted(t('overview.refusals'), ({ requests }) => requests.refused, eventsOf('refused')),
  ]
  return html`<dl class="figures">${rows.map(({ name, number, column, change, url }) => html`<div><dt>${name}</dt><dd><a class="figure" href="${url}" aria-label="${name} ${number}">${number}</a>${sparkline(column)}<span class="trend small">${trend(words, change, view.range)}</span></dd></div>`)}</dl>`
}

function failuresIn({ at, failures }: Plot): Column {
  return at.map((_at, n) => Object.values(failures).reduce((sum, column) => sum + (column[n] ?? 0), 0))
}

/** Compares with the preceding period of the same length. */
function trend({ t }: Words, change: number | undefined, range: Range): string {
  if (change === undefined) return t('overview.no_trend')
  if (change === 0) return t(`overview.same_${range}`)
  return change > 0 ? t(`overview.more_${range}`, { count: change }) : t(`overview.fewer_${range}`, { count: -change })
}

const SPARK = { width: 96, height: 24 } as const

/** The course of a figure without numbers, which the plots show. */
function sparkline(column: Column): Html {
  const most = Math.max(1, ...column.map(number => number ?? 0))
  const step = SPARK.width / Math.max(1, column.length - 1)
  const points = column.flatMap((number, n) =>
    number === null
      ? []
      : [`${(n * step).toFixed(1)},${(SPARK.height - 1 - (number / most) * (SPARK.height - 2)).toFixed(1)}`],
  )
  return html`<svg class="spark" viewBox="0 0 ${SPARK.width} ${SPARK.height}" preserveAspectRatio="none" aria-hidden="true" focusable="false"><polyline points="${points.join(' ')}"/></svg>`
}

/** The fields of the audit trail's form for this time, in UTC. */
function sinceIn(at: number): { since: string; zone: string } {
  return { since: new Date(at).toISOString().slice(0, 16), zone: '0' }
}

function rangeLink({ t }: Words, range: Range, current: Range) {
  const chosen = range === current ? html`aria-current="true"` : ''
  return html`<a class="button small quiet" href="${OWN_PATHS.console}?range=${range}" ${chosen}>${t(`overview.${range}`)}</a> `
}

const TIMED_NAMES = {
  request: 'overview.of_requests',
  provider: 'overview.of_provider',
  store: 'overview.of_store',
} as const

/** The names of the lines in the plots. */
function plotWords({ t }: Words): string {
  return new URLSearchParams({
    signIns: t('overview.sign_ins'),
    ...Object.fromEntries(
      FAILURE_REASONS.map(code => [`failed_${code}`, t('overview.failed_for', { reason: t(`reason.${code}`) })]),
    ),
    sessions: t('overview.sessions_now'),
    admitted: t('overview.admitted'),
    visitor: t('overview.visitors'),
    refused: t('overview.refusals'),
    error: t('overview.errors'),
    ...Object.fromEntries(
      TIMED.flatMap(what => [
        [`${what}_p50`, t('overview.median_of', { what: t(TIMED_NAMES[what]) })],
        [`${what}_p99`, t('overview.slowest_of', { what: t(TIMED_NAMES[what]) })],
      ]),
    ),
    time: t('overview.time'),
  }).toString()
}

function numbers(words: Words, plot: Plot): Html {
  const { t } = words
  const failures = failuresIn(plot)
  /** A row is the index of a slot. */
  const columns: TableColumn<number>[] = [
    { title: t('overview.time'), cell: n => moment(words, (plot.at[n] ?? 0) * 1000) },
    { title: t('overview.sign_ins'), cell: n => plot.signIns[n] },
    { title: t('overview.failures'), cell: n => failures[n] },
    { title: t('overview.admitted'), cell: n => plot.requests.admitted[n] },
    { title: t('overview.refusals'), cell: n => plot.requests.refused[n] },
    { title: t('overview.errors'), cell: n => plot.requests.error[n] },
  ]
  return table({ label: { text: t('overview.numbers') }, columns, rows: [...plot.at.keys()].reverse() })
}
