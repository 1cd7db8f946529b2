// The sessions tab of the console, and the page of one session.

import { html } from 'hono/html'
import { errorAnswer, ifStoreAvailable, languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import { clearCookie, type EndedNotice, readEnded } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { PersonalKey } from '../keys/personal.ts'
import type { AuditEvent } from '../observe/audit-event.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { deviceIcon } from '../pages/icon.ts'
import { type Html, moment, relativeMoment } from '../pages/layout.ts'
import { displayName, nameBefore, providerLabel, roleName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'
import { shortKey } from '../session/fields.ts'
import type { ListedSession } from '../session/listing.ts'
import type { SessionSummary } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import { isRecordKey } from '../session/ticket.ts'
import { safeText } from '../util/safe-text.ts'
import { type AuditNames, auditColumns, auditUrl, loadAuditNames } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { endAllButton, endButtons, sessionMenu } from './end-sessions.ts'
import { findUsers, type UserSessions } from './find-users.ts'
import { consoleFrame, storeUnavailablePage, type Viewer, viewerOf } from './frame.ts'
import { type Column, table } from './table.ts'

export async function showSessions(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const words = languageOf(context.pages, request)
  const query = new URLSearchParams(request.search)
  const text = (query.get('username') ?? '').trim().slice(0, MAX_SEARCH_LENGTH)
  const after = query.get('after') ?? ''
  const deviceName = await loadDeviceNames()
  const found = await ifStoreAvailable(
    context.observe.report,
    request,
    find(context.auth.sessions, text, after, words, deviceName),
  )
  if (!found)
    return pageAnswer(context.pages, storeUnavailablePage(words, viewerOf(caller), 'sessions'), {
      status: 503,
      cookies,
    })
  const ended = readEnded(context.auth.cookies, request.headers.cookie)
  const shown = found.users.map(user => shownSessions(user, text !== ''))
  const hosts = await ifStoreAvailable(context.observe.report, request, hostsOf(context, shown.flat()))
  const page = sessionsPage(words, {
    ...found,
    viewer: viewerOf(caller),
    now: context.now(),
    ownKey: loaded.key,
    providerNames: context.auth.providers.names,
    deviceName,
    text,
    isFirst: after === '',
    ended,
    hosts,
    idleEndOf: session => idleEndOf(context.auth.sessions, session),
  })
  return pageAnswer(context.pages, page, {
    cookies: ended ? [...cookies, clearCookie(context.auth.cookies.ended)] : cookies,
  })
}

/** Longer than any name. */
const MAX_SEARCH_LENGTH = 200

/** The hosts that each session has entered; `undefined` without `hosts`. */
async function hostsOf(
  { hosts }: ConsoleContext,
  sessions: readonly Pick<ListedSession, 'key'>[],
): Promise<SessionsView['hosts']> {
  if (!hosts) return undefined
  const listed = sessions.map(async ({ key }) => [key, await hosts.tickets.hostsOf(key)] as const)
  return new Map(await Promise.all(listed))
}

/** When the session ends without activity, if that is configured. */
function idleEndOf(sessions: Sessions, { key, summary }: ListedSession): number | undefined {
  return summary && sessions.idleEndOf({ key, seenAt: summary.seenAt })
}

async function find(sessions: Sessions, text: string, after: string, words: Words, deviceName: DeviceNames) {
  if (text !== '')
    return findUsers(sessions, { after, username: text, matches: createMatcher(text, words, deviceName) })
  const [page, count] = await Promise.all([findUsers(sessions, { after }), sessions.count()])
  return { ...page, count }
}

/** The log shows this many characters of a session's id. */
const MIN_ID_LENGTH = 10

/** Matches any part of the username, display name, address or device, in any case, or the beginning of the session's id. */
export function createMatcher(
  text: string,
  words: Words,
  deviceName: DeviceNames,
): (session: ListedSession) => boolean {
  const wanted = folded(text)
  const includesIt = (value: string) => folded(value).includes(wanted)
  // Many sessions have the same kind of browser, and naming it takes a while.
  const known = new Map<string, boolean>()
  const isDevice = (userAgent = '') => {
    const isKnown = known.get(userAgent)
    if (isKnown !== undefined) return isKnown
    const matches = includesIt(deviceName(words, userAgent))
    known.set(userAgent, matches)
    return matches
  }
  return ({ key, summary }) => {
    if (text.length >= MIN_ID_LENGTH && key.startsWith(text)) return true
    if (!summary) return false
    const { username, nickname, address = '', userAgent } = summary
    return includesIt(username) || includesIt(nickname) || includesIt(address) || isDevice(userAgent)
  }
}

/** To a reader, capitals and the wide letters of Chinese keyboards are the same as other letters. */
function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

// The page: who is signed in, with their sessions, and how to end them.

interface SessionsView {
  readonly viewer: Viewer
  /** Times are shown relative to this one. */
  readonly now: number
  readonly users: readonly UserSessions[]
  /** The viewer's own session. */
  readonly ownKey: string
  /** The name of each provider, keyed by its id; absent if there is only one. */
  readonly providerNames: Providers['names']
  readonly deviceName: DeviceNames
  /** The text of the search; empty for all users. */
  readonly text: string
  /** The number of all sessions. */
  readonly count?: number
  readonly isFirst: boolean
  readonly next?: string
  /** The sessions that have just been ended. */
  readonly ended: EndedNotice | undefined
  /** The hosts that each session has entered, by its key; absent without `hosts`. */
  readonly hosts?: ReadonlyMap<string, readonly string[]> | undefined
  readonly idleEndOf?: (session: ListedSession) => number | undefined
}

/** The form that the checkboxes belong to. */
const CHOSEN = 'chosen'
/** Without a search. A search finds the user's other sessions. */
const MAX_SHOWN_PER_USER = 5

function shownSessions({ sessions }: UserSessions, isSearch: boolean): readonly ListedSession[] {
  return isSearch ? sessions : sessions.slice(0, MAX_SHOWN_PER_USER)
}

export function sessionsPage(words: Words, view: SessionsView): string {
  const { t } = words
  const { users, text, isFirst, next } = view
  return consoleFrame(words, {
    section: 'sessions',
    viewer: view.viewer,
    scripts: ['sessions.js'],
    body: html`${endedNotice(words, view)}
<form method="get" class="search" role="search">
<label for="username">${t('console.search')}</label>
<input type="search" id="username" name="username" value="${text}" placeholder="${t('console.search_hint')}" autocomplete="off" spellcheck="false">
<button type="submit" class="button small">${t('console.search_button')}</button>
</form>
${lead(words, view)}
${users.length > 0 ? html`${sessionTable(words, view)}${chosenForm(words)}` : ''}
${nothingFound(words, view)}
${isFirst ? '' : html`<p><a href="${pageUrl(text)}">${t('console.first_page')}</a></p>`}
${next ? html`<p><a href="${pageUrl(text, next)}">${text === '' ? t('console.next_page') : t('console.search_further')}</a></p>` : ''}`,
  })
}

function nothingFound({ t }: Words, { users, next }: SessionsView) {
  if (users.length > 0) return ''
  return html`<p class="hint">${next ? t('console.nobody_yet') : t('console.nobody')}</p>`
}

function endedNotice({ t }: Words, { ended: notice }: SessionsView) {
  if (!notice) return ''
  const { ended, users } = notice
  const user = notice.user === undefined ? t('console.unreadable') : safeText(notice.user)
  const several =
    users === undefined ? t('console.ended', { user, ended }) : t('console.ended_several', { users, ended })
  return html`<div class="notice good" role="status"><p>${ended > 0 ? several : t('console.ended_none')}</p></div>`
}

function lead({ t }: Words, { text, count }: SessionsView) {
  if (count !== undefined) return html`<p class="lead">${t('console.count', { count })}</p>`
  return html`<p class="lead">${t('console.found', { username: text })} <a href="${OWN_PATHS.consoleSessions}">${t('console.show_all')}</a></p>`
}

function sessionTable(words: Words, view: SessionsView) {
  const groups = view.users.map(user => ({
    head: userHead(words, user, view),
    rows: shownSessions(user, view.text !== ''),
  }))
  return html`<div class="users">${table({ label: { text: words.t('console.sessions') }, columns: sessionColumns(words, view), groups })}</div>`
}

function sessionColumns(words: Words, view: SessionsView): Column<ListedSession>[] {
  const { t } = words
  const { hosts, providerNames, now } = view
  const time = (at: (summary: SessionSummary) => number) => (session: ListedSession) =>
    session.summary ? relativeMoment(words, at(session.summary), now) : ''
  const headNames = new Map(
    view.users.flatMap(({ sessions }) => sessions.map(({ key }) => [key, sessions[0]?.summary?.username])),
  )
  return [
    {
      title: t('console.user_and_device'),
      cell: session => deviceCell(words, session, { ...view, headName: headNames.get(session.key) }),
    },
    ...(providerNames
      ? [
          {
            title: t('session.provider'),
            cell: ({ summary }: ListedSession) => providerLabel(words, providerNames, summary?.provider),
          },
        ]
      : []),
    ...(hosts
      ? [
          {
            title: t('console.hosts'),
            kind: 'long' as const,
            cell: ({ key }: ListedSession) => hostList(hosts.get(key) ?? []),
          },
        ]
      : []),
    { title: t('console.signed_in_at'), cell: time(({ signedInAt }) => signedInAt) },
    { title: t('console.seen_at'), cell: time(({ seenAt }) => seenAt) },
    { title: t('session.expires'), cell: session => endOf(words, session, view) },
    {
      title: t('console.action'),
      kind: 'buttons',
      cell: session => sessionMenu(words, session, deviceLabel(words, session, view)),
    },
  ]
}

/** The user with their role, and a checkbox for all of their sessions. */
function userHead(words: Words, { sessions, areMore }: UserSessions, view: SessionsView): Html {
  const { t } = words
  const [newest] = sessions
  if (!newest) return html``
  const { summary, key } = newest
  const user = summary?.username ?? t('console.unreadable')
  const count = sessions.length
  const facts = [
    ...(summary ? [html`${roleName(words, summary.userRole)}`] : []),
    html`${areMore ? t('console.sessions_of_many', { count }) : t('console.sessions_of', { count })}`,
  ]
  const isCut = shownSessions({ sessions, areMore }, view.text !== '').length < count
  return html`<div class="user"><label class="choice"><input type="checkbox" name="user" value="${key}" form="${CHOSEN}" aria-label="${t('console.choose_user', { user: safeText(user) })}"></label>
<span class="name">${userName(words, summary)} <span class="dim facts">${facts.map((fact, n) => html`${n > 0 ? ' · ' : ''}${fact}`)}</span>${isCut ? html` <a class="small" href="${pageUrl(user)}">${t('console.show_sessions')}</a>` : ''}</span>
${endAllButton(words, key, safeText(user))}</div>`
}

/** A name may be written in either direction. */
function userName({ t }: Words, user: Pick<SessionSummary, 'nickname' | 'username'> | undefined): Html {
  if (!user) return html`${t('console.unreadable')}`
  const name = nameBefore(displayName(user), user.username).trim()
  return html`${name === '' ? '' : html`<bdi>${name}</bdi> `}<code>${safeText(user.username)}</code>`
}

interface DeviceView extends SessionsView {
  /** The user in the head above. A session from before a change of name has another one. */
  readonly headName: string | undefined
}

function deviceCell(words: Words, session: ListedSession, view: DeviceView): Html {
  const { t } = words
  const { key, summary } = session
  const other = summary && summary.username !== view.headName ? html`${userName(words, summary)}<br>` : ''
  const label = deviceLabel(words, session, view)
  const own = key === view.ownKey ? html` <span class="tag">${t('console.own_session')}</span>` : ''
  return html`<div class="device"><label class="choice"><input type="checkbox" name="session" value="${key}" form="${CHOSEN}" aria-label="${t('console.choose_session', { session: label })}"></label>
<span>${other}${deviceIcon(summary?.userAgent)} <a href="${OWN_PATHS.consoleSession}?key=${key}">${summary ? view.deviceName(words, summary.userAgent) : shortKey(key)}</a>${own}${summary ? boundTag(words, summary) : ''}<br><span class="dim">${summary?.address ?? t('device.address_unknown')}</span></span></div>`
}

/** The user and device of a session, in words. */
function deviceLabel(words: Words, { key, summary }: ListedSession, { deviceName }: SessionsView): string {
  if (!summary) return shortKey(key)
  return `${safeText(summary.username)} · ${deviceName(words, summary.userAgent)}`
}

/** Its checkboxes are in the table, each with its label. */
function chosenForm({ t }: Words): Html {
  // The script fills in the number.
  const many = t('console.chosen', { count: '#' })
  return html`<form id="${CHOSEN}" class="chosen" method="get" action="${OWN_PATHS.consoleConfirmEnd}">
<span id="chosen-hint" aria-live="polite" data-many="${many}">${t('console.chosen_hint')}</span>
<button type="submit" class="button small danger">${t('console.end_chosen')}</button></form>`
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

function boundTag({ t }: Words, { isBound }: SessionSummary) {
  return isBound ? html` <span class="tag">${t('device.bound')}</span>` : ''
}

function pageUrl(text: string, after?: string): string {
  const query = new URLSearchParams({ ...(text && { username: text }), ...(after && { after }) })
  return query.size === 0 ? OWN_PATHS.consoleSessions : `${OWN_PATHS.consoleSessions}?${query}`
}

// GET /_menshen/console/session: one session, active or ended, and its events in the audit trail.

const MAX_EVENTS = 50

export async function showSession(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const key = new URLSearchParams(request.search).get('key') ?? ''
  if (!isRecordKey(key)) return errorAnswer(context.pages, request, 'not_found', { cookies })
  const words = languageOf(context.pages, request)
  const found = await ifStoreAvailable(context.observe.report, request, findSession(context, key))
  if (!found)
    return pageAnswer(context.pages, storeUnavailablePage(words, viewerOf(caller), 'sessions'), {
      status: 503,
      cookies,
    })
  // The session never existed.
  if (!found.session && found.events.length === 0) return errorAnswer(context.pages, request, 'not_found', { cookies })
  const names = await loadAuditNames(context, found.events)
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

/** The trail identifies a session by its short key. */
async function findSession(
  context: ConsoleContext,
  key: string,
): Promise<Pick<SessionView, 'session' | 'events' | 'areMore' | 'hosts' | 'keys'>> {
  const { auth, observe } = context
  const [session, hosts, keys, { events, next }] = await Promise.all([
    auth.sessions.getListed(key),
    hostsOf(context, [{ key }]),
    keysOfUser(context, key),
    observe.auditTrail.find({ session: shortKey(key), limit: MAX_EVENTS }),
  ])
  return { session, hosts: hosts?.get(key), keys, events, areMore: next !== undefined && events.length === MAX_EVENTS }
}

/** Keys are revoked with all sessions of the user, not with a single one. */
async function keysOfUser({ auth }: ConsoleContext, key: string): Promise<PersonalKey[]> {
  const owner = await auth.personalKeys.ownerOfSession(key)
  return owner === undefined ? [] : auth.personalKeys.listOfOwner(owner)
}

// The page of one session: its fields while it is active, how to end it, and its timeline.

export interface SessionView {
  readonly viewer: Viewer
  readonly key: string
  /** Absent if it has ended. */
  readonly session: ListedSession | undefined
  readonly isOwn: boolean
  /** The hosts that it has entered; absent without `hosts`. */
  readonly hosts?: readonly string[] | undefined
  /** The personal keys of its user. */
  readonly keys: readonly PersonalKey[]
  /** Newest first. */
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
  { key, summary, expiresAt }: ListedSession,
  { isOwn, hosts, keys, names, idleEnd }: SessionView,
) {
  const { t } = words
  const own = isOwn ? html` <span class="tag">${t('console.own_session')}</span>` : ''
  if (!summary) return html`<p>${t('console.unreadable')}</p>${endButtons(words, key, '')}`
  const { username, userRole, provider = '', userAgent = '', address } = summary
  return html`<dl class="session-fields">
${detailRow(t('console.user'), html`${userName(words, summary)}${own}`)}
${names.providers ? detailRow(t('session.provider'), providerLabel(words, names.providers, provider)) : ''}
${detailRow(t('session.role'), roleName(words, userRole))}
${detailRow(t('device.title'), html`${deviceIcon(userAgent)} ${names.deviceName(words, userAgent)}${boundTag(words, summary)}${userAgent === '' ? '' : html`<br><code class="dim">${userAgent}</code>`}`)}
${detailRow(t('device.address'), address ?? t('device.address_unknown'))}
${hosts && hosts.length > 0 ? detailRow(t('console.hosts'), hostList(hosts)) : ''}
${detailRow(t('console.signed_in_at'), moment(words, summary.signedInAt))}
${detailRow(t('console.seen_at'), moment(words, summary.seenAt))}
${detailRow(t('session.expires'), moment(words, expiresAt))}
${idleEnd === undefined ? '' : detailRow(t('session.idle_ends'), moment(words, idleEnd))}
${keys.length > 0 ? detailRow(t('console.keys'), keyList(words, keys)) : ''}
</dl>
${endButtons(words, key, safeText(username))}`
}

function keyList(words: Words, keys: readonly PersonalKey[]) {
  const { t, rich } = words
  return html`${keys.map(
    ({ name, expiresAt, usedAt }, n) => html`${n > 0 ? html`<br>` : ''}${name}
<span class="dim">${rich('keys.ends', { time: moment(words, expiresAt) })} · ${usedAt === undefined ? t('keys.never_used') : rich('keys.used', { time: moment(words, usedAt) })}</span>`,
  )}`
}

function detailRow(name: string, value: unknown) {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}

function timeline(words: Words, { events, names }: SessionView) {
  return table({ label: { by: 'timeline' }, columns: auditColumns(words, names), rows: events })
}
