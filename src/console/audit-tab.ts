// The audit tab of the console: the page, its live updates and its exports.

import { html } from 'hono/html'
import type { AuditedCode } from '../events.ts'
import {
  errorAnswer,
  ifStoreAvailable,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  safetyHeaders,
} from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { AUDITED, type AuditEvent, jsonLine } from '../observe/audit-event.ts'
import { type AuditFilter, CSV_HEAD, csvLine, type FoundEvent, type FoundPage } from '../observe/audit-trail.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { deviceIcon, icon } from '../pages/icon.ts'
import { exactMoment, type Html } from '../pages/layout.ts'
import { providerLabel } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'
import type { GuardedHandler } from '../sign-in/guarded.ts'
import { safeText } from '../util/safe-text.ts'
import { headline, otherFields } from './audit-fields.ts'
import type { ConsoleContext } from './context.ts'
import { type DisplayNames, findDisplayNames } from './display-names.ts'
import { consoleFrame, type Viewer, viewerOf } from './frame.ts'
import type { LiveStreams } from './live-streams.ts'
import { type Column, table, tableRows } from './table.ts'

const PAGE_SIZE = 50

export async function showAudit(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const query = readQuery(request)
  const { before } = query
  const filter = { ...filterOf(query, context.now()), ...(before && { before }), limit: PAGE_SIZE }
  const page = await ifStoreAvailable(context.observe.report, request, context.observe.auditTrail.find(filter))
  const view = {
    viewer: viewerOf(caller),
    query,
    page,
    pageSize: PAGE_SIZE,
    keep: context.settings.AUDIT_KEEP,
    names: await loadAuditNames(context, page?.events ?? []),
  }
  return pageAnswer(context.pages, auditPage(languageOf(context.pages, request), view), {
    cookies: caller.cookies,
    ...(page === undefined && { status: 503 }),
  })
}

// A query of the audit trail, as sent by the form of the console.

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS
const DAY = /^\d{4}-\d\d-\d\d$/
const LOCAL_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/

/** How far back the quick ranges go. */
const QUICK_RANGES = { '15m': 15 * MINUTE_MS, '1h': 60 * MINUTE_MS, '1d': DAY_MS } as const
type QuickRange = keyof typeof QUICK_RANGES

function isQuickRange(text: string): text is QuickRange {
  return Object.hasOwn(QUICK_RANGES, text)
}

export function readQuery({ search }: Pick<GatewayRequest, 'search'>): AuditQuery {
  const fields = new URLSearchParams(search)
  const given = (name: string) => fields.get(name)?.trim() ?? ''
  const [since, until, range] = [given('since'), given('until'), given('range')]
  return {
    requestId: given('requestId'),
    user: given('user'),
    event: given('event'),
    session: given('session'),
    since,
    until,
    // Times that were typed in replace it.
    range: isQuickRange(range) && since === '' && until === '' ? range : '',
    zone: /^-?\d{1,3}$/.test(given('zone')) ? given('zone') : '',
    before: given('before'),
  }
}

export function filterOf(query: AuditQuery, now: number): AuditFilter {
  const { requestId, user, event, session, since, until, range, zone } = query
  const from = range === '' ? timeIn(since, zone) : now - QUICK_RANGES[range]
  const to = timeIn(until, zone)
  // The end of the given day or minute.
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

/** In the reader's time zone, which the script sends as minutes from it to UTC. Without it, in the server's time zone. */
function timeIn(text: string, zone: string): number | undefined {
  const local = DAY.test(text) ? `${text}T00:00` : text.replace(' ', 'T')
  if (!LOCAL_TIME.test(local)) return undefined
  const at = zone === '' ? Date.parse(local) : Date.parse(`${local}Z`) + Number(zone) * MINUTE_MS
  return Number.isNaN(at) ? undefined : at
}

// GET /_menshen/console/audit/live: the events that are newer than the page, from all processes and machines.

/** If more events happen between two updates, the page shows only the newest. */
const MAX_LIVE_EVENTS = 50

export function createAuditStream(liveStreams: LiveStreams): GuardedHandler<ConsoleContext> {
  return (context, request, caller) => streamAudit(liveStreams, context, request, caller)
}

async function streamAudit(
  liveStreams: LiveStreams,
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { auditTrail } = context.observe
  const words = languageOf(context.pages, request)
  const filter = filterOf(readQuery(request), context.now())
  let newest = new URLSearchParams(request.search).get('after') ?? ''
  let count = 0
  return liveStreams.open(context, request, caller, async () => {
    const { events } = await auditTrail.find({ ...filter, limit: MAX_LIVE_EVENTS })
    const fresh = events.filter(({ position }: FoundEvent) => position > newest)
    const [latest] = fresh
    if (!latest) return []
    newest = latest.position
    count += fresh.length
    const columns = auditColumns(words, await loadAuditNames(context, fresh))
    const rows = String(tableRows(columns, fresh))
    return [['events', { rows, said: words.t('audit.new_events', { count }), after: newest }]]
  })
}

// GET /_menshen/console/audit.csv and audit.jsonl: the events that match the filters, oldest first, for other programs.

interface Format {
  readonly type: string
  readonly extension: string
  readonly head: string
  line(event: AuditEvent): string
}

const CSV: Format = { type: 'text/csv; charset=utf-8', extension: 'csv', head: CSV_HEAD, line: csvLine }
const JSON_LINES: Format = { type: 'application/jsonl; charset=utf-8', extension: 'jsonl', head: '', line: jsonLine }

/** Events per chunk. */
const EVENTS_PER_CHUNK = 200

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
  // A file with the events of any time does not tell that the given one was ignored.
  if (hasUnreadableTime(readQuery(request))) return errorAnswer(context.pages, request, 'bad_request', { cookies })
  const parts = partsOf(context, request, format)
  // While the store is unavailable, a page reports it; once the file has begun, it can only break off.
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
  { settings, observe, now }: ConsoleContext,
  request: GatewayRequest,
  { head, line }: Format,
): AsyncGenerator<string, void, void> {
  let lines = head
  let count = 0
  const events: AsyncIterable<FoundEvent | 'unreadable'> = observe.auditTrail.walk(filterOf(readQuery(request), now()))
  for await (const event of events) {
    if (event === 'unreadable') continue
    lines += line(event)
    // Events that are written during the export must not make it endless.
    if (++count >= settings.AUDIT_KEEP) break
    if (count % EVENTS_PER_CHUNK > 0) continue
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

// The audit trail: what happened, newest first, with filters, further pages, and files for other programs.

/** As it was typed in; empty fields are empty strings. */
export interface AuditQuery {
  readonly requestId: string
  readonly user: string
  readonly event: string
  readonly session: string
  readonly since: string
  readonly until: string
  /** The last minutes, hour or day, until now. */
  readonly range: QuickRange | ''
  /** Minutes from the reader's time zone to UTC. */
  readonly zone: string
  /** The position where the page begins. */
  readonly before: string
}

export interface AuditView {
  readonly viewer: Viewer
  readonly query: AuditQuery
  /** Absent while the store is unavailable. */
  readonly page: FoundPage | undefined
  readonly pageSize: number
  /** The largest number of events in the trail. */
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
${hasUnreadableTime(query) ? problem(t('rules.bad_at')) : ''}
${page ? found(words, view, page) : problem(t('console.store_away'))}`,
  })
}

/** The events on the page are then those of any time. */
function hasUnreadableTime({ since, until, zone }: AuditQuery): boolean {
  return [since, until].some(text => text !== '' && timeIn(text, zone) === undefined)
}

function problem(message: string): Html {
  return html`<p class="notice bad" role="alert">${message}</p>`
}

function filterForm(words: Words, query: AuditQuery): Html {
  const { t } = words
  const { requestId, user, event, session, since, until, range, zone } = query
  const options = AUDITED.map(
    code => html`<option value="${code}" ${code === event ? html`selected` : ''}>${t(`audit.event_${code}`)}</option>`,
  )
  const isFiltered = [requestId, user, event, session, since, until].some(given => given !== '')
  return html`${quickRanges(words, query)}
<details class="filters" ${isFiltered ? html`open` : ''}><summary>${t('audit.filters')}</summary>
<form method="get" action="${OWN_PATHS.consoleAudit}" class="search fields" role="search" id="filters">
<label>${t('console.user')}<input name="user" value="${user}" autocomplete="off"></label>
<label>${t('audit.event')}<select name="event"><option value="">${t('audit.all_events')}</option>${options}</select></label>
<label>${t('audit.request')}<input name="requestId" value="${requestId}" autocomplete="off" spellcheck="false"></label>
<label>${t('audit.session')}<input name="session" value="${session}" autocomplete="off" spellcheck="false"></label>
${timeField(t('audit.since'), 'since', since)}
${timeField(t('audit.until'), 'until', until)}
${range === '' ? '' : html`<input type="hidden" name="range" value="${range}">`}<input type="hidden" name="zone" value="${zone}">
<div class="actions"><button type="submit" class="button small">${t('console.search_button')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleAudit}">${t('audit.clear')}</a></div>
</form></details>`
}

/** A text field, because a browser's own time field is in the language of the browser, not of the page. */
function timeField(label: string, name: string, value: string): Html {
  return html`<label>${label}<input name="${name}" value="${value.replace('T', ' ')}" placeholder="2026-11-16 09:00" title="2026-11-16 09:00" autocomplete="off" spellcheck="false"></label>`
}

/** The other filters stay as they are. */
function quickRanges({ t }: Words, query: AuditQuery): Html {
  const link = (range: QuickRange | '', text: string) => {
    const url = auditUrl({ ...query, range, since: '', until: '', zone: '', before: '' }, OWN_PATHS.consoleAudit)
    const isCurrent = query.range === range && query.since === '' && query.until === ''
    return html`<a class="button small quiet" href="${url}" ${isCurrent ? html`aria-current="true"` : ''}>${text}</a>
`
  }
  return html`<div class="ranges" role="group" aria-label="${t('overview.range')}">${link('15m', t('audit.last_15m'))}${link('1h', t('audit.last_1h'))}${link('1d', t('audit.last_1d'))}${link('', t('audit.any_time'))}</div>`
}

function found(words: Words, view: AuditView, page: FoundPage): Html {
  const { t } = words
  const { query, names } = view
  const { events, unreadable } = page
  return html`<p class="exports"><a href="${auditUrl(query, OWN_PATHS.consoleAuditCsv)}" download>${t('audit.csv')}</a>
<a href="${auditUrl(query, OWN_PATHS.consoleAuditJson)}" download>${t('audit.jsonl')}</a></p>
<p id="news" role="status" class="hint"></p>
<p id="copied" aria-live="polite" class="unseen"></p>
${unreadable > 0 ? html`<p class="notice">${t('audit.unreadable', { count: unreadable })}</p>` : ''}
${events.length === 0 ? html`<p class="hint" id="nothing">${t('audit.nothing')}</p>` : ''}
<div id="trail" ${liveAddress(query, page)} ${events.length === 0 ? html`hidden` : ''}>${table({ label: { text: t('console.audit') }, columns: auditColumns(words, names), rows: events })}</div>
${further(words, view, page)}`
}

/** New events appear at the top, so only the first page without an end time is live. */
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

// One event of the audit trail as a row of its table. All of its fields are in a drawer beside the page, with links to all events of
// its request, user and session.

/** Names to show in place of ids. */
export interface AuditNames {
  /** The name of each provider, keyed by its id; absent if there is only one. */
  readonly providers: Providers['names']
  readonly deviceName: DeviceNames
  readonly displayName: DisplayNames
}

export async function loadAuditNames(
  context: ConsoleContext,
  events: readonly Pick<AuditEvent, 'fields'>[],
): Promise<AuditNames> {
  const [deviceName, displayName] = await Promise.all([loadDeviceNames(), findDisplayNames(context, events)])
  return { providers: context.auth.providers.names, deviceName, displayName }
}

export function auditColumns(words: Words, names: AuditNames): Column<AuditEvent>[] {
  const { t } = words
  return [
    { title: t('audit.time'), cell: ({ time }) => exactMoment(words, time) },
    {
      title: t('audit.event'),
      cell: ({ event, fields }) =>
        html`${outcomeIcon(words, event)} ${eventName(words, event)}${headline(words, fields)}`,
    },
    { title: t('console.user'), cell: ({ fields }) => (fields.user === undefined ? '' : userCell(fields, names)) },
    {
      title: t('audit.from'),
      cell: ({ fields: { address = '', userAgent = '' } }) =>
        html`${address}${userAgent === '' ? '' : html`<br><span class="small">${deviceIcon(String(userAgent))} ${names.deviceName(words, String(userAgent))}</span>`}`,
    },
    { title: t('audit.details'), kind: 'buttons', cell: event => eventDetails(words, event, names) },
  ]
}

type Outcome = 'success' | 'failure' | 'info'

const OUTCOMES: Readonly<Record<AuditedCode, Outcome>> = {
  sign_in: 'success',
  step_up: 'success',
  step_up_failed: 'failure',
  sign_in_failed: 'failure',
  host_entered: 'success',
  sign_out: 'info',
  session_ended: 'info',
  session_end_unconfirmed: 'failure',
  device_bound: 'success',
  device_refused: 'failure',
  device_missing: 'failure',
  session_refresh_failed: 'failure',
  identity_changed: 'info',
  refused: 'failure',
  rate_limited: 'failure',
  key_created: 'info',
  key_used: 'success',
  key_revoked: 'info',
  config_reloaded: 'info',
}

/** The outcomes differ in shape, too. */
function outcomeIcon({ t }: Words, event: string): Html {
  const code = knownCode(event)
  const outcome = code ? OUTCOMES[code] : 'info'
  return html`<span class="outcome ${outcome}" title="${t(`audit.outcome_is_${outcome}`)}">${icon(outcome)}<span class="unseen">${t(`audit.outcome_is_${outcome}`)}</span></span>`
}

function knownCode(event: string): AuditedCode | undefined {
  return AUDITED.find(known => known === event)
}

/** The code, if this version does not know the event. */
function eventName({ t }: Words, event: string): Html {
  const code = knownCode(event)
  return code ? html`<strong>${t(`audit.event_${code}`)}</strong>` : html`<code>${event}</code>`
}

function userCell(fields: AuditEvent['fields'], { displayName }: AuditNames): Html {
  const name = displayName(fields)
  return html`<span class="user-name">${name === '' ? '' : html`<bdi>${name}</bdi> `}${linked('user', String(fields.user ?? ''))}</span>`
}

function eventDetails(words: Words, event: AuditEvent, names: AuditNames): Html {
  const { t } = words
  const id = `event-${event.id}`
  return html`<button type="button" class="button small quiet" popovertarget="${id}" aria-haspopup="dialog">${t('audit.details')}</button>
<div popover id="${id}" class="drawer" role="dialog" aria-labelledby="${id}-title">
<div class="drawer-head"><h2 id="${id}-title">${outcomeIcon(words, event.event)} ${eventName(words, event.event)}</h2>
<button type="button" class="button small quiet" popovertarget="${id}" popovertargetaction="hide">${t('audit.close')}</button></div>
<dl>${commonFields(words, event, names).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}${otherFields(words, event.fields)}</dl></div>`
}

/** The fields that most events have; empty ones are left out. */
function commonFields(words: Words, { time, fields }: AuditEvent, names: AuditNames): [string, Html][] {
  const { t } = words
  const text = (name: string) => String(fields[name] ?? '')
  const [address, userAgent, provider, requestId, session] = [
    'address',
    'userAgent',
    'provider',
    'requestId',
    'session',
  ].map(text)
  const shown: [string, string | undefined, () => Html][] = [
    [t('audit.time'), 'always', () => exactMoment(words, time)],
    [t('console.user'), text('user'), () => userCell(fields, names)],
    [t('device.address'), address, () => html`${address}`],
    [
      t('device.title'),
      userAgent,
      () =>
        html`${deviceIcon(userAgent)} ${names.deviceName(words, userAgent)}<br><code class="dim">${userAgent}</code>`,
    ],
    [
      t('session.provider'),
      names.providers && provider,
      () => html`${providerLabel(words, names.providers, provider)}`,
    ],
    [
      t('audit.request'),
      requestId,
      () => html`${linked('requestId', requestId ?? '')}${copyButton(words, requestId ?? '')}`,
    ],
    [t('audit.session'), session, () => linked('session', session ?? '')],
  ]
  return shown.flatMap(([name, given, value]) => (given ? [[name, value()]] : []))
}

/** Visible only where a script can copy. */
function copyButton({ t }: Words, id: string): Html {
  return html` <button type="button" class="copy" data-copy="${id}" data-copied="${t('audit.copied')}" title="${t('audit.copy')}" aria-label="${t('audit.copy_label', { id })}">${icon('copy')}</button>`
}

function linked(name: 'user' | 'requestId' | 'session', value: string): Html {
  if (value === '') return html``
  return html`<a href="${auditUrl({ [name]: value }, OWN_PATHS.consoleAudit)}"><code>${safeText(value)}</code></a>`
}

/** Leaves out the empty fields of the query. */
export function auditUrl(query: object, path: string): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
