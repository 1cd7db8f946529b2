// The overview of the console: problems, tiles and charts, also live.

import { html } from 'hono/html'
import { type Advice, adviceFor } from '../config/advice.ts'
import type { Finding } from '../doctor/finding.ts'
import { MenshenError } from '../errors.ts'
import type { AuditedCode } from '../events.ts'
import { languageOf, pageAnswer, redirectAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { FAILURE_REASONS, type Plot, plotOf, sumOf } from '../observe/history.ts'
import { RANGES, type Range } from '../observe/history-slots.ts'
import { type AlarmingEvent, type CurrentProblem, currentProblems } from '../observe/problems.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { GuardedHandler } from '../sign-in/guarded.ts'
import { phrase } from '../text/text.ts'
import { type CachedValue, createCachedValue } from '../util/cached-value.ts'
import { auditUrl } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { cell, consoleFrame, row, table, type Viewer, viewerOf } from './frame.ts'
import type { LiveStreams } from './live-streams.ts'

export interface Overview {
  readonly show: GuardedHandler<ConsoleContext>
  /** GET /_menshen/console/live: the sentences and plots, as they change. */
  readonly stream: GuardedHandler<ConsoleContext>
}

/** However many users look, the trail is read once within this time. */
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
      // The list of sessions had this address once, and may be in a bookmark.
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
          ['problems', String(problemList(words, view))],
          ['figures', String(figures(words, view))],
          ['plot', view.plot],
        ]
      })
    },
  }
}

const HOUR_MS = 3_600_000
/** Events that show whether users can sign in and stay signed in. */
const TELLING = ['sign_in', 'sign_in_failed', 'session_refresh_failed']
/** How many of each are read. */
const MOST_EVENTS = 1000

function rangeOf({ search }: GatewayRequest): Range {
  const wanted = new URLSearchParams(search).get('range') ?? ''
  return Object.hasOwn(RANGES, wanted) ? (wanted as Range) : 'hour'
}

async function makeView(context: ConsoleContext, range: Range): Promise<OverviewView> {
  const { settings, auth, observe, doctor } = context
  const { providers, roles } = auth
  const [{ slots, isPartial }, lastHour, { events, isStoreAway }] = await Promise.all([
    observe.history.read(range),
    observe.history.read('hour'),
    recentEvents(context),
  ])
  return {
    range,
    plot: plotOf(slots),
    isStoreAway: isPartial || isStoreAway,
    problems: currentProblems(events, lastHour.slots),
    providerNames: new Map(providers.all.map(({ plan }) => [plan.id, plan.name])),
    advice: adviceFor(
      settings,
      providers.all.map(({ plan }) => plan),
      roles,
    ),
    failures: doctor.findings.latest().filter(({ level }) => level === 'failure'),
  }
}

/** Other problems are shown while the store is unavailable, too. */
async function recentEvents({ observe, now }: ConsoleContext) {
  try {
    const since = now() - HOUR_MS
    // Each code separately: a flood of one must not hide another.
    const pages = await Promise.all(TELLING.map(event => observe.auditTrail.find({ event, since, limit: MOST_EVENTS })))
    return { events: pages.flatMap(({ events }) => events), isStoreAway: false }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return { events: [], isStoreAway: true }
  }
}

// The page: current problems in sentences, then the plots.

export interface OverviewView {
  readonly range: Range
  readonly plot: Plot
  readonly isStoreAway: boolean
  readonly problems: readonly CurrentProblem[]
  /** Keyed by their ids. */
  readonly providerNames: ReadonlyMap<string, string | undefined>
  /** What a developer should know about how it runs. */
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
    body: html`<section id="problems" aria-live="polite">${problemList(words, view)}</section>
<div id="figures">${figures(words, view)}</div>
<p class="ranges" aria-label="${t('overview.range')}">${(Object.keys(RANGES) as Range[]).map(range => rangeLink(words, range, view.range))}</p>
${viewer.isUnconfirmed ? '' : plotsPart(words, view)}
<details ${viewer.isUnconfirmed ? 'open' : ''}><summary>${t('overview.numbers')}</summary>${numbers(words, view.plot)}</details>`,
  })
}

/** A stream fills them, which ends with a session that cannot be confirmed. */
function plotsPart(words: Words, { range }: OverviewView): Html {
  const { t } = words
  return html`<div id="plots" data-live="${OWN_PATHS.consoleLive}?range=${range}" data-words="${plotWords(words)}">
${PLOTS.map(name => html`<figure><figcaption>${t(`overview.plot_${name}`)}</figcaption><div class="plot" id="plot-${name}"></div></figure>`)}
</div>`
}

/** The worst first, advice last. One failure is one notice, however many checks have found it. */
export function problemList(words: Words, view: OverviewView): Html {
  const { t, render } = words
  const { advice } = view
  const troubles = troublesIn(words, view)
  if (troubles.length + advice.length === 0) return html`<div class="notice good"><p>${t('health.all_good')}</p></div>`
  return html`${troubles.map(trouble => html`<div class="notice ${trouble.isOver ? 'good' : 'bad'}"><p>${trouble.message}</p>${cause(words, trouble)}</div>`)}
${advice.map(({ code, remedy }) => html`<div class="notice"><p>${render(phrase('with_remedy', { seen: phrase(`advice.${code}`), remedy }))}</p></div>`)}`
}

interface Trouble {
  /** What it is about: the beginning of the names of the doctor's checks. */
  readonly about: string | undefined
  readonly message: Html
  /** It works again. */
  readonly isOver?: boolean
  /** What the doctor has found of it. */
  readonly findings: readonly Finding[]
}

function troublesIn(words: Words, view: OverviewView): Trouble[] {
  const { problems, failures, isStoreAway } = view
  const seen = problems
    // The first notice says it already.
    .filter(problem => !(isStoreAway && problem.kind === 'event' && SUBJECTS[problem.code] === 'store'))
    .map(problem => ({
      about: subjectOf(problem, view),
      message: problemMessage(words, problem, view),
      isOver: problem.kind === 'recovered',
    }))
  const known = [...(isStoreAway ? [{ about: 'store', message: html`${words.t('problem.store_away')}` }] : []), ...seen]
  const shown = new Set<Finding>()
  const troubles = known.map(trouble => {
    const findings = failures.filter(finding => !shown.has(finding) && isAbout(finding, trouble.about))
    for (const finding of findings) shown.add(finding)
    return { ...trouble, findings }
  })
  const rest = Map.groupBy(
    failures.filter(finding => !shown.has(finding)),
    ({ name }) => areaOf(name, view),
  )
  const found = [...rest].flatMap(([about, [first, ...others]]) =>
    first ? [{ about, message: findingMessage(words, first), findings: others }] : [],
  )
  return [...troubles, ...found]
}

const SUBJECTS: Partial<Record<AlarmingEvent, string>> = {
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

/** The first finding is the cause of the others. Without one, Health looks for it. */
function cause(words: Words, { about, findings: [first, ...others] }: Trouble): Html | string {
  const { rich } = words
  const health = html`<a href="${OWN_PATHS.consoleHealth}">${words.t('console.health')}</a>`
  if (!first) return about === undefined ? '' : html`<p class="small">${rich('problem.cause', { health })}</p>`
  return html`<p class="small">${findingMessage(words, first)}${others.length === 0 ? '' : html` ${rich('problem.more', { count: html`${others.length}`, health })}`}</p>`
}

function findingMessage({ render, checkLabel }: Words, { name, seen, remedy }: Finding): Html {
  return html`<strong>${checkLabel(name)}</strong> ${render(seen)}${remedy ? html`<br>${render(remedy)}` : ''}`
}

function problemMessage(words: Words, problem: CurrentProblem, { providerNames }: OverviewView): Html {
  const { rich, t } = words
  if (problem.kind === 'event') return html`${t(`problem.${problem.code}`, { times: problem.times })}`
  const provider = html`<strong>${providerNames.get(problem.provider) ?? t('topic.provider')}</strong>`
  const failures = html`${problem.failures}`
  if (problem.kind === 'recovered')
    return rich('problem.recovered', { provider, failures, until: moment(words, problem.until) })
  const people = html`${problem.people}`
  return rich('problem.provider', { provider, failures, people, since: moment(words, problem.since) })
}

/** The sums of the plots, each with a link to what it counts. */
export function figures({ t }: Words, { plot, isStoreAway }: Pick<OverviewView, 'plot' | 'isStoreAway'>): Html {
  const failed = Object.values(plot.failures).reduce((sum, column) => sum + sumOf(column), 0)
  const eventsOf = (event: AuditedCode) => auditUrl({ event, ...sinceOf(plot) }, OWN_PATHS.consoleAudit)
  const sessions = plot.sessions.findLast(number => number !== null) ?? '—'
  const rows = [
    [t('overview.sessions_now'), isStoreAway ? t('overview.unavailable') : sessions, OWN_PATHS.consoleSessions],
    [t('overview.sign_ins'), sumOf(plot.signIns), eventsOf('sign_in')],
    [t('overview.failures'), failed, eventsOf('sign_in_failed')],
    [t('overview.refusals'), sumOf(plot.requests.refused), eventsOf('refused')],
  ] as const
  return html`<dl class="figures">${rows.map(([name, number, url]) => html`<div><dt>${name}</dt><dd><a class="figure" href="${url}" aria-label="${name} ${number}">${number}</a></dd></div>`)}</dl>`
}

/** As the form of the audit trail has it, in UTC. */
function sinceOf({ at: [first] }: Plot): { since: string; zone: string } | undefined {
  if (first === undefined) return undefined
  return { since: new Date(first * 1000).toISOString().slice(0, 16), zone: '0' }
}

function rangeLink({ t }: Words, range: Range, current: Range) {
  const chosen = range === current ? html`aria-current="true"` : ''
  return html`<a class="button small quiet" href="${OWN_PATHS.console}?range=${range}" ${chosen}>${t(`overview.${range}`)}</a> `
}

/** What the plots call their lines. */
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
      cells(n).map((number, index) => cell(columns[index + 1] ?? '', number)),
    ),
  )
  return table({ label: { text: t('overview.numbers') }, columns, rows: rows.reverse() })
}
