// The sessions tab of the console, and the page of one session.

import { html } from 'hono/html'
import { errorAnswer, ifReachable, languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import { clearCookie, readEnded } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { PersonalKey } from '../keys/personal.ts'
import type { AuditEvent } from '../observe/audit-event.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { deviceIcon } from '../pages/icon.ts'
import { moment, relativeMoment } from '../pages/layout.ts'
import { nameBefore, roleName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import { shortKey } from '../session/fields.ts'
import type { ListedSession } from '../session/listing.ts'
import type { PublicPart } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import { isRecordKey } from '../session/ticket.ts'
import { type AuditNames, auditColumns, auditRow, auditUrl } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { endButtons, sessionMenu } from './end-sessions.ts'
import {
  cell,
  consoleFrame,
  longCell,
  plainCell,
  row,
  storeUnavailablePage,
  table,
  type Viewer,
  viewerOf,
} from './frame.ts'

const PAGE_SIZE = 50

export async function showSessions(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const words = languageOf(context.pages, request)
  const query = new URLSearchParams(request.search)
  const username = query.get('username')?.trim() ?? ''
  const after = query.get('after') ?? ''
  const [found, deviceName] = await Promise.all([
    ifReachable(context.observe.report, request, find(context.auth.sessions, username, after)),
    loadDeviceNames(),
  ])
  if (!found)
    return pageAnswer(context.pages, storeUnavailablePage(words, viewerOf(caller), 'sessions'), {
      status: 503,
      cookies,
    })
  const ended = readEnded(context.auth.cookies, request.headers.cookie)
  const hosts = await ifReachable(context.observe.report, request, hostsOf(context, found.sessions))
  const page = sessionsPage(words, {
    ...found,
    viewer: viewerOf(caller),
    now: context.now(),
    ownKey: loaded.key,
    providerNames: context.auth.providers.names,
    deviceName,
    username,
    isFirst: after === '',
    ended,
    hosts,
    idleEndOf: session => idleEndOf(context.auth.sessions, session),
  })
  return pageAnswer(context.pages, page, {
    cookies: ended ? [...cookies, clearCookie(context.auth.cookies.ended)] : cookies,
  })
}

/** The hosts that each session has entered; `undefined` where there are none to enter. */
async function hostsOf(
  { hosts }: ConsoleContext,
  sessions: readonly Pick<ListedSession, 'key'>[],
): Promise<SessionsView['hosts']> {
  if (!hosts) return undefined
  const listed = sessions.map(async ({ key }) => [key, await hosts.tickets.hostsOf(key)] as const)
  return new Map(await Promise.all(listed))
}

/** When it ends without activity, where that is set. */
function idleEndOf(sessions: Sessions, { key, publicPart }: ListedSession): number | undefined {
  return publicPart && sessions.idleEndOf({ key, seenAt: publicPart.seenAt })
}

async function find(sessions: Sessions, username: string, after: string) {
  const limit = PAGE_SIZE
  if (username) return sessions.list({ username, limit, ...(after && { after }) })
  const [page, count] = await Promise.all([
    sessions.newest({ limit, ...(after && { before: after }) }),
    sessions.count(),
  ])
  return { ...page, count }
}

// The page: the list of sessions, and how to end one.

interface SessionsView {
  readonly viewer: Viewer
  /** What times are relative to. */
  readonly now: number
  readonly sessions: readonly ListedSession[]
  /** The session that looks at the page. */
  readonly ownKey: string
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providerNames: ReadonlyMap<string, string> | undefined
  readonly deviceName: DeviceNames
  /** Whose sessions; empty for all users. */
  readonly username: string
  /** How many sessions there are in total. */
  readonly count?: number
  readonly isFirst: boolean
  readonly next?: string
  /** What has just been ended. */
  readonly ended: { readonly ended: number; readonly user?: string } | undefined
  /** The hosts that each session has entered, by its key; absent without `hosts`. */
  readonly hosts?: ReadonlyMap<string, readonly string[]> | undefined
  readonly idleEndOf?: (session: ListedSession) => number | undefined
}

export function sessionsPage(words: Words, view: SessionsView): string {
  const { t } = words
  const { sessions, username, isFirst, next } = view
  return consoleFrame(words, {
    section: 'sessions',
    viewer: view.viewer,
    body: html`${endedNotice(words, view)}
<form method="get" class="search" role="search">
<label for="username">${t('console.search')}</label>
<input id="username" name="username" value="${username}" autocomplete="off">
<button type="submit" class="button small">${t('console.search_button')}</button>
</form>
${lead(words, view)}
${sessions.length > 0 ? sessionTable(words, view) : ''}
${sessions.length === 0 && !next ? html`<p class="hint">${t('console.nobody')}</p>` : ''}
${isFirst ? '' : html`<p><a href="${pageUrl(username)}">${t('console.first_page')}</a></p>`}
${next ? html`<p><a href="${pageUrl(username, next)}">${t('console.next_page')}</a></p>` : ''}`,
  })
}

function endedNotice({ t }: Words, { ended: said }: SessionsView) {
  if (!said) return ''
  const { ended, user = t('console.unreadable') } = said
  const sentence = ended > 0 ? t('console.ended', { user, ended }) : t('console.ended_none')
  return html`<div class="notice good" role="status"><p>${sentence}</p></div>`
}

function lead({ t }: Words, { username, count }: SessionsView) {
  if (count !== undefined) return html`<p class="lead">${t('console.count', { count })}</p>`
  return html`<p class="lead">${t('console.found', { username })} <a href="${OWN_PATHS.consoleSessions}">${t('console.show_all')}</a></p>`
}

function sessionTable(words: Words, view: SessionsView) {
  const { t } = words
  const columns = [
    t('console.user'),
    ...(view.providerNames ? [t('session.provider')] : []),
    t('session.role'),
    t('device.title'),
    ...(view.hosts ? [t('console.hosts')] : []),
    t('console.signed_in_at'),
    t('console.seen_at'),
    t('session.expires'),
    t('console.action'),
  ]
  const groups = byUser(view.sessions).map(sessions =>
    sessions.map((session, n) => sessionRow(words, session, view, n > 0)),
  )
  return table({ label: { text: t('console.sessions') }, columns, groups })
}

/** Sessions of one user together, the latest user first. The same name at two providers is two users. */
function byUser(sessions: readonly ListedSession[]): ListedSession[][] {
  const userOf = ({ key, publicPart }: ListedSession) =>
    publicPart ? JSON.stringify([publicPart.provider, publicPart.username]) : key
  return [...Map.groupBy(sessions, userOf).values()]
}

/** `isRepeated`: the row above is of the same user. */
function sessionRow(words: Words, session: ListedSession, view: SessionsView, isRepeated: boolean) {
  const { t } = words
  const { key, publicPart } = session
  const { ownKey, providerNames, now } = view
  const { provider = '' } = publicPart ?? {}
  const who = publicPart
    ? html`${nameBefore(publicPart.nickname, publicPart.username)}<code>${publicPart.username}</code>`
    : t('console.unreadable')
  const page = `${OWN_PATHS.consoleSession}?key=${key}`
  return row(
    html`<a href="${page}" ${isRepeated ? html`class="repeated"` : ''}>${who}</a>${key === ownKey ? html` <span class="tag">${t('console.own_session')}</span>` : ''}`,
    [
      ...(providerNames ? [cell(t('session.provider'), providerNames.get(provider) ?? provider)] : []),
      cell(t('session.role'), publicPart ? roleName(words, publicPart.userRole) : ''),
      cell(t('device.title'), publicPart ? deviceOf(words, publicPart, view) : ''),
      ...(view.hosts ? [longCell(t('console.hosts'), hostList(view.hosts.get(key) ?? []))] : []),
      cell(t('console.signed_in_at'), publicPart ? relativeMoment(words, publicPart.signedInAt, now) : ''),
      cell(t('console.seen_at'), publicPart ? relativeMoment(words, publicPart.seenAt, now) : ''),
      cell(t('session.expires'), endOf(words, session, view)),
      plainCell(sessionMenu(words, key, publicPart?.username ?? '')),
    ],
  )
}

function hostList(hosts: readonly string[]) {
  return html`${hosts.map((host, n) => html`${n > 0 ? html`<br>` : ''}<code>${host}</code>`)}`
}

function endOf(words: Words, session: ListedSession, { now, idleEndOf }: SessionsView) {
  const end = relativeMoment(words, session.expiresAt, now)
  const idleEnd = idleEndOf?.(session)
  if (idleEnd === undefined) return end
  return html`${end}<br><span class="dim">${words.rich('session.if_idle', { time: relativeMoment(words, idleEnd, now) })}</span>`
}

function deviceOf(words: Words, publicPart: PublicPart, view: SessionsView) {
  const { userAgent, address } = publicPart
  const device = view.deviceName(words, userAgent)
  return html`${deviceIcon(userAgent)} ${device}${boundTag(words, publicPart)}<br><span class="dim">${address ?? words.t('device.address_unknown')}</span>`
}

function boundTag({ t }: Words, { isBound }: PublicPart) {
  return isBound ? html` <span class="tag">${t('device.bound')}</span>` : ''
}

function pageUrl(username: string, after?: string): string {
  const query = new URLSearchParams({ ...(username && { username }), ...(after && { after }) })
  return query.size === 0 ? OWN_PATHS.consoleSessions : `${OWN_PATHS.consoleSessions}?${query}`
}

// GET /_menshen/console/session: one session, alive or ended, and what the audit trail tells of it.

const MOST_EVENTS = 50

export async function showSession(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const key = new URLSearchParams(request.search).get('key') ?? ''
  if (!isRecordKey(key)) return errorAnswer(context.pages, request, 'not_found', { cookies })
  const words = languageOf(context.pages, request)
  const found = await ifReachable(context.observe.report, request, findSession(context, key))
  if (!found)
    return pageAnswer(context.pages, storeUnavailablePage(words, viewerOf(caller), 'sessions'), {
      status: 503,
      cookies,
    })
  // The session has never existed.
  if (!found.session && found.events.length === 0) return errorAnswer(context.pages, request, 'not_found', { cookies })
  const names = { providers: context.auth.providers.names, deviceName: await loadDeviceNames() }
  const idleEnd = found.session && idleEndOf(context.auth.sessions, found.session)
  const page = sessionPage(words, {
    ...found,
    viewer: viewerOf(caller),
    key,
    isOwn: key === loaded.key,
    names,
    idleEnd,
  })
  return pageAnswer(context.pages, page, { cookies })
}

/** The trail knows a session by its short key. */
async function findSession(
  context: ConsoleContext,
  key: string,
): Promise<Pick<SessionView, 'session' | 'events' | 'areMore' | 'hosts' | 'keys'>> {
  const { auth, observe } = context
  const [session, hosts, keys, { events, next }] = await Promise.all([
    auth.sessions.getListed(key),
    hostsOf(context, [{ key }]),
    keysOfUser(context, key),
    observe.auditTrail.find({ session: shortKey(key), limit: MOST_EVENTS }),
  ])
  return { session, hosts: hosts?.get(key), keys, events, areMore: next !== undefined && events.length === MOST_EVENTS }
}

/** They end with all sessions of the user, and not with one. */
async function keysOfUser({ auth }: ConsoleContext, key: string): Promise<PersonalKey[]> {
  const owner = await auth.personalKeys.ownerOfSession(key)
  return owner === undefined ? [] : auth.personalKeys.listOfOwner(owner)
}

// The page of one session: its fields while it lives, how to end it, and its timeline.

export interface SessionView {
  readonly viewer: Viewer
  readonly key: string
  /** Absent if it has ended. */
  readonly session: ListedSession | undefined
  readonly isOwn: boolean
  /** That it has entered; absent without `hosts`. */
  readonly hosts?: readonly string[] | undefined
  /** The personal keys of its user. */
  readonly keys: readonly PersonalKey[]
  /** The newest first. */
  readonly events: readonly AuditEvent[]
  readonly areMore: boolean
  readonly names: AuditNames
  /** When it ends without activity. */
  readonly idleEnd?: number | undefined
}

export function sessionPage(words: Words, view: SessionView): string {
  const { t } = words
  const { key, session, areMore } = view
  return consoleFrame(words, {
    section: 'sessions',
    viewer: view.viewer,
    scripts: ['copy.js'],
    title: t('console.session', { session: shortKey(key) }),
    body: html`<p><a href="${OWN_PATHS.consoleSessions}">${t('console.back_to_list')}</a></p>
${session ? fields(words, session, view) : html`<div class="notice"><p>${t('console.session_gone')}</p></div>`}
<h2 id="timeline">${t('console.timeline')}</h2>
<p id="copied" aria-live="polite" class="unseen"></p>
${view.events.length > 0 ? timeline(words, view) : html`<p class="hint">${t('console.no_events')}</p>`}
${areMore ? html`<p><a href="${auditUrl({ session: shortKey(key) }, OWN_PATHS.consoleAudit)}">${t('console.all_events')}</a></p>` : ''}`,
  })
}

function fields(
  words: Words,
  { key, publicPart, expiresAt }: ListedSession,
  { isOwn, hosts, keys, names, idleEnd }: SessionView,
) {
  const { t } = words
  const own = isOwn ? html` <span class="tag">${t('console.own_session')}</span>` : ''
  if (!publicPart) return html`<p>${t('console.unreadable')}</p>${endButtons(words, key, '')}`
  const { username, nickname, userRole, provider = '', userAgent = '', address } = publicPart
  return html`<dl class="session-fields">
${fact(t('console.user'), html`${nameBefore(nickname, username)}<code>${username}</code>${own}`)}
${names.providers ? fact(t('session.provider'), names.providers.get(provider) ?? provider) : ''}
${fact(t('session.role'), roleName(words, userRole))}
${fact(t('device.title'), html`${deviceIcon(userAgent)} ${names.deviceName(words, userAgent)}${boundTag(words, publicPart)}${userAgent === '' ? '' : html`<br><code class="dim">${userAgent}</code>`}`)}
${fact(t('device.address'), address ?? t('device.address_unknown'))}
${hosts && hosts.length > 0 ? fact(t('console.hosts'), hostList(hosts)) : ''}
${fact(t('console.signed_in_at'), moment(words, publicPart.signedInAt))}
${fact(t('console.seen_at'), moment(words, publicPart.seenAt))}
${fact(t('session.expires'), moment(words, expiresAt))}
${idleEnd === undefined ? '' : fact(t('session.idle_ends'), moment(words, idleEnd))}
${keys.length > 0 ? fact(t('console.keys'), keyList(words, keys)) : ''}
</dl>
${endButtons(words, key, username)}`
}

function keyList(words: Words, keys: readonly PersonalKey[]) {
  const { t, rich } = words
  return html`${keys.map(
    ({ name, expiresAt, usedAt }, n) => html`${n > 0 ? html`<br>` : ''}${name}
<span class="dim">${rich('keys.ends', { time: moment(words, expiresAt) })} · ${usedAt === undefined ? t('keys.never_used') : rich('keys.used', { time: moment(words, usedAt) })}</span>`,
  )}`
}

function fact(name: string, value: unknown) {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}

function timeline(words: Words, { events, names }: SessionView) {
  const rows = events.map(event => auditRow(words, event, names))
  return table({ label: { by: 'timeline' }, columns: auditColumns(words, names), rows })
}
