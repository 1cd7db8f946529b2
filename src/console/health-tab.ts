// GET /_menshen/console/health: the doctor's findings, response times of provider and store, and the running processes.

import { html } from 'hono/html'
import type { Settings } from '../config/settings.ts'
import type { Finding } from '../doctor/finding.ts'
import { ifStoreAvailable, languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { History } from '../observe/history.ts'
import { addSlot, emptySlot, quantile, TIMED, type TimedOperation } from '../observe/history-slots.ts'
import type { Instance } from '../observe/instances.ts'
import { icon } from '../pages/icon.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import type { ConsoleContext } from './context.ts'
import { banner, consoleFrame, type Viewer, viewerOf } from './frame.ts'
import { type Column, table } from './table.ts'

export async function showHealth(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const [findings, times, instances] = await Promise.all([
    context.doctor.examine(),
    lastHour(context.observe.history),
    ifStoreAvailable(context.observe.report, request, context.observe.history.instances()),
  ])
  const view = {
    viewer: viewerOf(caller),
    findings,
    times,
    instances,
    node: process.versions.node,
    store: storeOf(context.settings),
  }
  return pageAnswer(context.pages, healthPage(languageOf(context.pages, request), view), { cookies: caller.cookies })
}

async function lastHour(history: History): Promise<HealthView['times']> {
  const { slots } = await history.read('hour')
  const all = emptySlot(0)
  for (const slot of slots) addSlot(all, slot)
  return TIMED.map(what => ({ what, p50: quantile(all, what, 0.5), p99: quantile(all, what, 0.99) }))
}

/** The kind of store; the version of a server is among the findings. */
function storeOf({ STORE }: Settings): string {
  return STORE.slice(0, STORE.indexOf(':'))
}

export interface HealthView {
  readonly viewer: Viewer
  readonly findings: readonly Finding[]
  /** In milliseconds, for the last hour; absent if there was nothing to measure. */
  readonly times: readonly {
    readonly what: TimedOperation
    readonly p50: number | undefined
    readonly p99: number | undefined
  }[]
  /** The instances that share the store, this one first; absent while the store is unavailable. */
  readonly instances: readonly Instance[] | undefined
  /** The version of Node. */
  readonly node: string
  /** The kind of store. */
  readonly store: string
}

/** The levels that are shown open; passed checks are folded. */
const ORDER = ['failure', 'warning'] as const
const SHOWN_TIMES = {
  request: 'overview.of_requests',
  provider: 'overview.of_provider',
  store: 'overview.of_store',
} as const

export function healthPage(words: Words, view: HealthView): string {
  const { findings } = view
  const open = ORDER.flatMap(level => findings.filter(finding => finding.level === level))
  const passed = findings.filter(({ level }) => level === 'good')
  const { t, rich } = words
  const columns = findingColumns(words)
  return consoleFrame(words, {
    section: 'health',
    viewer: view.viewer,
    body: html`${summary(words, findings)}
${open.length === 0 ? '' : table({ label: { text: t('health.results') }, columns, rows: open })}
<details id="passed"><summary>${t('health.passed', { count: passed.length })}</summary>
${table({ label: { text: t('health.passed', { count: passed.length }) }, columns: columns.slice(0, -1), rows: passed })}</details>
<p class="hint">${rich('health.hint', { doctor: html`<code>menshen doctor</code>`, sign_in: html`<code>menshen doctor --sign-in</code>` })}</p>
${timesPart(words, view)}
${instancesPart(words, view)}`,
  })
}

/** The last column is of no use to a check that passed. */
function findingColumns({ t, render, checkLabel }: Words): Column<Finding>[] {
  return [
    { title: t('health.check'), cell: ({ name }) => html`<span title="${name}">${checkLabel(name)}</span>` },
    {
      title: t('health.result'),
      cell: ({ level }) => html`<span class="tag ${level}">${icon(LEVEL_ICONS[level])} ${t(`health.${level}`)}</span>`,
    },
    { title: t('health.seen'), kind: 'long', cell: ({ seen }) => render(seen) },
    { title: t('health.remedy'), kind: 'long', cell: ({ remedy }) => (remedy ? render(remedy) : '') },
  ]
}

const LEVEL_ICONS = { good: 'success', warning: 'warning', failure: 'failure' } as const

function summary({ t }: Words, findings: readonly Finding[]): Html {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const [failures, warnings] = [count('failure'), count('warning')]
  if (failures > 0) return banner('down', t('health.failures', { failures, warnings }))
  return warnings > 0 ? banner('degraded', t('health.warnings', { warnings })) : banner('good', t('health.all_good'))
}

function timesPart({ t }: Words, { times }: HealthView): Html {
  const columns: Column<HealthView['times'][number]>[] = [
    { title: t('health.waited_for'), cell: ({ what }) => t(SHOWN_TIMES[what]) },
    { title: t('health.median'), cell: ({ p50 }) => inMs(p50) },
    { title: t('health.slowest'), cell: ({ p99 }) => inMs(p99) },
  ]
  return html`<h2 id="times">${t('health.times')}</h2>
${table({ label: { by: 'times' }, columns, rows: times })}`
}

function inMs(ms: number | undefined): string {
  return ms === undefined ? '—' : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

function instancesPart(words: Words, { instances, node, store }: HealthView): Html {
  const { t } = words
  const columns: Column<Instance>[] = [
    {
      title: t('health.machine'),
      cell: ({ host }, n) => html`${host} ${n === 0 ? html`<span class="tag">${t('health.this_one')}</span>` : ''}`,
    },
    { title: t('health.process'), cell: instance => processName(words, instance) },
    { title: t('health.version'), cell: ({ version }) => version },
    { title: t('health.started'), cell: ({ startedAt }) => moment(words, startedAt) },
  ]
  return html`<h2 id="instances">${t('health.instances')}</h2>
<p>${t('health.runs_on', { node, store })}</p>
${instances ? table({ label: { by: 'instances' }, columns, rows: instances }) : html`<p class="hint">${t('health.instances_unknown')}</p>`}`
}

function processName({ t }: Words, { pid, worker }: Instance): string {
  return worker === undefined ? String(pid) : t('health.worker', { pid, worker })
}
