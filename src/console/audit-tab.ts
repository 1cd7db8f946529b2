// The audit tab of the console: the page, its live updates and its exports.

import { html } from 'hono/html'
import { ifReachable, languageOf, type OwnAnswer, pageAnswer, safetyHeaders } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { AUDITED, type AuditEvent, jsonLine } from '../observe/audit-event.ts'
import { type AuditFilter, CSV_HEAD, csvLine, type FoundEvent, type FoundPage } from '../observe/audit-trail.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { deviceIcon, icon } from '../pages/icon.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { GuardedHandler } from '../sign-in/guarded.ts'
import { fieldLines } from './audit-fields.ts'
import type { ConsoleContext } from './context.ts'
import { consoleFrame, longCell, row, table, type Viewer, viewerOf } from './frame.ts'
import type { LiveStreams } from './live-streams.ts'

const PAGE_SIZE = 50

export async function showAudit(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const query = readQuery(request)
  const { before } = query
  const filter = { ...filterOf(query), ...(before && { before }), limit: PAGE_SIZE }
  const page = await ifReachable(context.observe.report, request, context.observe.auditTrail.find(filter))
  const view = {
    viewer: viewerOf(caller),
    query,
    page,
    pageSize: PAGE_SIZE,
    keep: context.settings.AUDIT_KEEP,
    names: { providers: context.auth.providers.names, deviceName: await loadDeviceNames() },
  }
  return pageAnswer(context.pages, auditPage(languageOf(context.pages, request), view), {
    cookies: caller.cookies,
    ...(page === undefined && { status: 503 }),
  })
}

// A query of the audit trail, as the console's form sends it.

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS
const DAY = /^\d{4}-\d\d-\d\d$/
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/

export function readQuery({ search }: Pick<GatewayRequest, 'search'>): AuditQuery {
  const fields = new URLSearchParams(search)
  const given = (name: string) => fields.get(name)?.trim() ?? ''
  return {
    requestId: given('requestId'),
    user: given('user'),
    event: given('event'),
    session: given('session'),
    since: given('since'),
    until: given('until'),
    zone: /^-?\d{1,3}$/.test(given('zone')) ? given('zone') : '',
    before: given('before'),
  }
}

export function filterOf({ requestId, user, event, session, since, until, zone }: AuditQuery): AuditFilter {
  const [from, to] = [timeIn(since, zone), timeIn(until, zone)]
  // The end of what was named: of that day, or of that minute.
  const length = DAY.test(until) ? DAY_MS : MINUTE_MS
  return {
    ...(requestId && { requestId }),
    ...(user && { user }),
    ...(event && { event }),
    ...(session && { session }),
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to + length - 1 }),
  }
}

/** In the reader's time zone, which the script tells (minutes from it to UTC); without it in the server's own. */
function timeIn(text: string, zone: string): number | undefined {
  const local = DAY.test(text) ? `${text}T00:00` : text
  if (!LOCAL_TIME.test(local)) return undefined
  const at = zone === '' ? Date.parse(local) : Date.parse(`${local}Z`) + Number(zone) * MINUTE_MS
  return Number.isNaN(at) ? undefined : at
}

// GET /_menshen/console/audit/live: the events after the newest on the page, of all processes and machines.

/** If more events happen between two updates, the page shows only the newest. */
const MOST_AT_ONCE = 50

export function createAuditStream(liveStreams: LiveStreams): GuardedHandler<ConsoleContext> {
  return (context, request, caller) => streamAudit(liveStreams, context, request, caller)
}

async function streamAudit(
  liveStreams: LiveStreams,
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { providers } = context.auth
  const { auditTrail } = context.observe
  const words = languageOf(context.pages, request)
  const filter = filterOf(readQuery(request))
  const names = { providers: providers.names, deviceName: await loadDeviceNames() }
  let newest = new URLSearchParams(request.search).get('after') ?? ''
  let count = 0
  return liveStreams.open(context, request, caller, async () => {
    const { events } = await auditTrail.find({ ...filter, limit: MOST_AT_ONCE })
    const fresh = events.filter(({ position }: FoundEvent) => position > newest)
    const [latest] = fresh
    if (!latest) return []
    newest = latest.position
    count += fresh.length
    const rows = fresh.map(event => String(auditRow(words, event, names))).join('')
    return [['events', { rows, said: words.t('audit.new_events', { count }), after: newest }]]
  })
}

// GET /_menshen/console/audit.csv and audit.jsonl: the events that match the filters, the oldest first, for other programs.

interface Format {
  readonly type: string
  readonly extension: string
  readonly head: string
  line(event: AuditEvent): string
}

const CSV: Format = { type: 'text/csv; charset=utf-8', extension: 'csv', head: CSV_HEAD, line: csvLine }
const JSON_LINES: Format = { type: 'application/jsonl; charset=utf-8', extension: 'jsonl', head: '', line: jsonLine }

/** Events per chunk. */
const IN_A_PART = 200

export function sendAuditCsv(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  return send(context, request, caller, CSV)
}

export function sendAuditJson(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  return send(context, request, caller, JSON_LINES)
}

async function send(
  context: ConsoleContext,
  request: GatewayRequest,
  { cookies }: SignedInCaller,
  format: Format,
): Promise<OwnAnswer> {
  const parts = partsOf(context, request, format)
  // While the store is unavailable a page says so; once the file has begun, it can only break off.
  const first = await parts.next()
  const day = new Date(context.now()).toISOString().slice(0, 10)
  const headers = new Headers({
    ...safetyHeaders(context.settings),
    'content-type': format.type,
    'content-disposition': `attachment; filename="audit-${day}.${format.extension}"`,
  })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return { outcome: 'own', response: new Response(streamOf(first, parts), { headers }) }
}

async function* partsOf(
  { settings, observe }: ConsoleContext,
  request: GatewayRequest,
  { head, line }: Format,
): AsyncGenerator<string, void, void> {
  let lines = head
  let count = 0
  const events: AsyncIterable<FoundEvent | 'unreadable'> = observe.auditTrail.walk(filterOf(readQuery(request)))
  for await (const event of events) {
    if (event === 'unreadable') continue
    lines += line(event)
    // Events that are written during the export must not make it endless.
    if (++count >= settings.AUDIT_KEEP) break
    if (count % IN_A_PART > 0) continue
    yield lines
    lines = ''
  }
  if (lines !== '') yield lines
}

function streamOf(first: IteratorResult<string, void>, parts: AsyncGenerator<string, void, void>) {
  const encoder = new TextEncoder()
  let next: IteratorResult<string, void> | undefined = first
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const part: IteratorResult<string, void> = next ?? (await parts.next())
      next = undefined
      if (part.done) controller.close()
      else controller.enqueue(encoder.encode(part.value))
    },
    async cancel() {
      await parts.return()
    },
  })
}

// The audit trail: what happened, the newest first, with filters, further pages, and files for other programs.

/** As it was typed in; empty fields are empty strings. */
export interface AuditQuery {
  readonly requestId: string
  readonly user: string
  readonly event: string
  readonly session: string
  readonly since: string
  readonly until: string
  /** Minutes from the reader's time zone to UTC. */
  readonly zone: string
  /** The page that begins there. */
  readonly before: string
}

export interface AuditView {
  readonly viewer: Viewer
  readonly query: AuditQuery
  /** Absent while the store is away. */
  readonly page: FoundPage | undefined
  readonly pageSize: number
  /** How many events there can be. */
  readonly keep: number
  readonly names: AuditNames
}

export function auditPage(words: Words, view: AuditView): string {
  const { t } = words
  const { page, query } = view
  return consoleFrame(words, {
    section: 'audit',
    viewer: view.viewer,
    scripts: ['audit.js', 'copy.js'],
    body: html`${view.keep === 0 ? html`<p class="notice">${t('audit.off')}</p>` : ''}
${filterForm(words, query)}
${page ? found(words, view, page) : html`<p class="notice bad" role="alert">${t('console.store_away')}</p>`}`,
  })
}

function filterForm({ t }: Words, { requestId, user, event, session, since, until, zone }: AuditQuery): Html {
  const options = AUDITED.map(
    code => html`<option value="${code}" ${code === event ? html`selected` : ''}>${t(`audit.event_${code}`)}</option>`,
  )
  const isFiltered = [requestId, user, event, session, since, until].some(given => given !== '')
  return html`<details class="filters" ${isFiltered ? html`open` : ''}><summary>${t('audit.filters')}</summary>
<form method="get" action="${OWN_PATHS.consoleAudit}" class="search fields" role="search" id="filters">
<label>${t('audit.request')}<input name="requestId" value="${requestId}" autocomplete="off" spellcheck="false"></label>
<label>${t('console.user')}<input name="user" value="${user}" autocomplete="off"></label>
<label>${t('audit.event')}<select name="event"><option value="">${t('audit.all_events')}</option>${options}</select></label>
<label>${t('audit.session')}<input name="session" value="${session}" autocomplete="off" spellcheck="false"></label>
<label>${t('audit.since')}<input type="datetime-local" name="since" value="${since}"></label>
<label>${t('audit.until')}<input type="datetime-local" name="until" value="${until}"></label>
<input type="hidden" name="zone" value="${zone}">
<button type="submit" class="button small">${t('console.search_button')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleAudit}">${t('audit.clear')}</a>
</form></details>`
}

function found(words: Words, view: AuditView, page: FoundPage): Html {
  const { t } = words
  const { query, names } = view
  const { events, unreadable } = page
  const rows = events.map(event => auditRow(words, event, names))
  return html`<p class="exports"><a href="${auditUrl(query, OWN_PATHS.consoleAuditCsv)}" download>${t('audit.csv')}</a>
<a href="${auditUrl(query, OWN_PATHS.consoleAuditJson)}" download>${t('audit.jsonl')}</a></p>
<p id="news" role="status" class="hint"></p>
<p id="copied" aria-live="polite" class="unseen"></p>
${unreadable > 0 ? html`<p class="notice">${t('audit.unreadable', { count: unreadable })}</p>` : ''}
${events.length === 0 ? html`<p class="hint" id="nothing">${t('audit.nothing')}</p>` : ''}
<div id="trail" ${liveAddress(query, page)} ${events.length === 0 ? html`hidden` : ''}>${table({ label: { text: t('console.audit') }, columns: auditColumns(words, names), rows })}</div>
${further(words, view, page)}`
}

/** New events come at the top: only on the first page, and without an end time. */
function liveAddress(query: AuditQuery, { events }: FoundPage): Html | string {
  if (query.before !== '' || query.until !== '') return ''
  const url = auditUrl({ ...query, live: 'yes' }, OWN_PATHS.consoleAuditLive)
  return html`data-live="${url}" data-after="${events[0]?.position ?? ''}"`
}

function further({ t }: Words, { query, pageSize }: AuditView, { events, next }: FoundPage): Html {
  const older = (label: string, before: string) =>
    html`<a href="${auditUrl({ ...query, before }, OWN_PATHS.consoleAudit)}" rel="next">${label}</a>`
  const newest = html`<a href="${auditUrl({ ...query, before: '' }, OWN_PATHS.consoleAudit)}">${t('audit.newest')}</a> `
  const isWhole = events.length >= pageSize
  return html`<p class="pages">${query.before === '' ? '' : newest}
${next === undefined ? html`<span class="hint">${t('audit.end')}</span>` : isWhole ? older(t('audit.older'), next) : html`${t('audit.looked')} ${older(t('audit.further'), next)}`}</p>`
}

// One event of the audit trail as a row of its table, with links to everything about its request, user and session.

/** What is known under another name. */
export interface AuditNames {
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providers: ReadonlyMap<string, string> | undefined
  readonly deviceName: DeviceNames
}

/** Fields that have their own column, or mean nothing to a reader. */
const ELSEWHERE = new Set(['user', 'sub', 'address', 'userAgent', 'provider', 'requestId', 'session'])

/** The columns of the table. */
export function auditColumns({ t }: Words, { providers }: AuditNames): string[] {
  return [
    t('audit.time'),
    t('audit.event'),
    t('console.user'),
    t('audit.from'),
    ...(providers ? [t('session.provider')] : []),
    t('audit.request'),
  ]
}

export function auditRow(
  words: Words,
  { time, event, fields }: AuditEvent,
  { providers, deviceName }: AuditNames,
): Html {
  const { t } = words
  const text = (name: string) => String(fields[name] ?? '')
  const [provider, userAgent] = [text('provider'), text('userAgent')]
  return row(moment(words, time), [
    longCell(t('audit.event'), html`${eventName(words, event)}${details(words, fields)}`),
    longCell(t('console.user'), linked('user', text('user'))),
    longCell(
      t('audit.from'),
      html`${text('address')}<br><span class="small" title="${userAgent}">${userAgent && html`${deviceIcon(userAgent)} ${deviceName(words, userAgent)}`}</span>`,
    ),
    ...(providers ? [longCell(t('session.provider'), providers.get(provider) ?? provider)] : []),
    longCell(
      t('audit.request'),
      html`${linked('requestId', text('requestId'))}${copyButton(words, text('requestId'))} ${fields.session === undefined ? '' : html`<span class="small">${t('audit.session')} ${linked('session', text('session'))}</span>`}`,
    ),
  ])
}

/** Seen only where a script can copy. */
function copyButton({ t }: Words, id: string): Html {
  if (id === '') return html``
  return html` <button type="button" class="copy" data-copy="${id}" data-copied="${t('audit.copied')}" title="${t('audit.copy')}" aria-label="${t('audit.copy_label', { id })}">${icon('copy')}</button>`
}

/** For an event that this version does not know, its code. */
function eventName({ t }: Words, event: string): Html {
  const code = AUDITED.find(known => known === event)
  return code ? html`<strong>${t(`audit.event_${code}`)}</strong>` : html`<code>${event}</code>`
}

function details(words: Words, fields: AuditEvent['fields']): Html {
  return fieldLines(words, Object.fromEntries(Object.entries(fields).filter(([name]) => !ELSEWHERE.has(name))))
}

function linked(name: 'user' | 'requestId' | 'session', value: string): Html {
  if (value === '') return html``
  return html`<a href="${auditUrl({ [name]: value }, OWN_PATHS.consoleAudit)}"><code>${value}</code></a>`
}

/** Without the empty fields of the query. */
export function auditUrl(query: object, path: string): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
