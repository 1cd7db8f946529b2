// GET /_menshen/console/health: the doctor's findings, response times of provider and store, and the running processes.

import { html } from 'hono/html'
import type { Settings } from '../config/settings.ts'
import type { Finding } from '../doctor/finding.ts'
import { ifReachable, languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { History } from '../observe/history.ts'
import { addSlot, emptySlot, quantile, TIMED, type TimedOperation } from '../observe/history-slots.ts'
import type { Instance } from '../observe/instances.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import type { ConsoleContext } from './context.ts'
import { cell, consoleFrame, longCell, row, table, type Viewer, viewerOf } from './frame.ts'

export async function showHealth(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const [findings, times, instances] = await Promise.all([
    context.doctor.examine(),
    lastHour(context.observe.history),
    ifReachable(context.observe.report, request, context.observe.history.instances()),
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
  /** Milliseconds, of the last hour; absent where there was nothing to measure. */
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

/** Failures first. */
const ORDER = ['failure', 'warning', 'good'] as const
const SHOWN_TIMES = {
  request: 'overview.of_requests',
  provider: 'overview.of_provider',
  store: 'overview.of_store',
} as const

export function healthPage(words: Words, view: HealthView): string {
  const { findings } = view
  const sorted = ORDER.flatMap(level => findings.filter(finding => finding.level === level))
  const { t, rich } = words
  const columns = [t('health.check'), t('health.result'), t('health.seen'), t('health.remedy')]
  return consoleFrame(words, {
    section: 'health',
    viewer: view.viewer,
    body: html`<p class="lead">${summary(words, findings)}</p>
${table({ label: { text: t('health.results') }, columns, rows: sorted.map(finding => findingRow(words, finding)) })}
<p class="hint">${rich('health.hint', { doctor: html`<code>menshen doctor</code>`, sign_in: html`<code>menshen doctor --sign-in</code>` })}</p>
${timesPart(words, view)}
${instancesPart(words, view)}`,
  })
}

function findingRow({ t, render, checkLabel }: Words, { name, level, seen, remedy }: Finding): Html {
  return row(html`<span title="${name}">${checkLabel(name)}</span>`, [
    cell(t('health.result'), html`<span class="tag ${level}">${t(`health.${level}`)}</span>`),
    longCell(t('health.seen'), render(seen)),
    longCell(t('health.remedy'), remedy ? render(remedy) : ''),
  ])
}

function summary({ t }: Words, findings: readonly Finding[]): string {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const [failures, warnings] = [count('failure'), count('warning')]
  if (failures > 0) return t('health.failures', { failures, warnings })
  return warnings > 0 ? t('health.warnings', { warnings }) : t('health.all_good')
}

function timesPart({ t }: Words, { times }: HealthView): Html {
  const columns = [t('health.waited_for'), t('health.median'), t('health.slowest')]
  const rows = times.map(({ what, p50, p99 }) =>
    row(t(SHOWN_TIMES[what]), [cell(t('health.median'), inMs(p50)), cell(t('health.slowest'), inMs(p99))]),
  )
  return html`<h2 id="times">${t('health.times')}</h2>
${table({ label: { by: 'times' }, columns, rows })}`
}

function inMs(ms: number | undefined): string {
  return ms === undefined ? '—' : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

function instancesPart(words: Words, { instances, node, store }: HealthView): Html {
  const { t } = words
  const columns = [t('health.machine'), t('health.process'), t('health.version'), t('health.started')]
  const rows = (instances ?? []).map((instance, n) =>
    row(html`${instance.host} ${n === 0 ? html`<span class="tag">${t('health.this_one')}</span>` : ''}`, [
      cell(t('health.process'), processName(words, instance)),
      cell(t('health.version'), instance.version),
      cell(t('health.started'), moment(words, instance.startedAt)),
    ]),
  )
  return html`<h2 id="instances">${t('health.instances')}</h2>
<p>${t('health.runs_on', { node, store })}</p>
${instances ? table({ label: { by: 'instances' }, columns, rows }) : html`<p class="hint">${t('health.instances_unknown')}</p>`}`
}

function processName({ t }: Words, { pid, worker }: Instance): string {
  return worker === undefined ? String(pid) : t('health.worker', { pid, worker })
}
