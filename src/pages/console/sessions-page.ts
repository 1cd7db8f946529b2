// Who is signed in, and the way to end a session.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Listed } from '../../session/session-listing.ts'
import { roleName } from '../account-page.ts'
import type { DeviceNames } from '../device-name.ts'
import { deviceIcon } from '../icon.ts'
import { relativeMoment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'
import { sessionMenu } from './end-buttons.ts'
import { cell, plainCell, row, table } from './table.ts'

interface SessionsView {
  readonly viewer: Viewer
  /** What times are relative to. */
  readonly now: number
  readonly sessions: readonly Listed[]
  /** The session that looks at the page. */
  readonly ownKey: string
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providerNames: ReadonlyMap<string, string> | undefined
  readonly deviceName: DeviceNames
  /** Whose sessions; empty for everybody's. */
  readonly username: string
  /** How many there are of everybody. */
  readonly count?: number
  readonly isFirst: boolean
  readonly next?: string
  /** What has just been ended. */
  readonly ended: { readonly ended: number; readonly user?: string } | undefined
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

/** Those of one user together, whoever came last first. The same name at two providers is two people. */
function byUser(sessions: readonly Listed[]): Listed[][] {
  const userOf = ({ key, publicPart }: Listed) =>
    publicPart ? JSON.stringify([publicPart.provider, publicPart.username]) : key
  return [...Map.groupBy(sessions, userOf).values()]
}

/** `isRepeated`: the row above is of the same user. */
function sessionRow(words: Words, { key, publicPart, expiresAt }: Listed, view: SessionsView, isRepeated: boolean) {
  const { t } = words
  const { ownKey, providerNames, now } = view
  const { provider = '' } = publicPart ?? {}
  const who = publicPart ? html`${publicPart.nickname} <code>${publicPart.username}</code>` : t('console.unreadable')
  const page = `${OWN_PATHS.consoleSession}?key=${key}`
  return row(
    html`<a href="${page}" ${isRepeated ? html`class="repeated"` : ''}>${who}</a>${key === ownKey ? html` <span class="tag">${t('console.own_session')}</span>` : ''}`,
    [
      ...(providerNames ? [cell(t('session.provider'), providerNames.get(provider) ?? provider)] : []),
      cell(t('session.role'), publicPart ? roleName(words, publicPart.userRole) : ''),
      cell(t('device.title'), publicPart ? deviceOf(words, publicPart, view) : ''),
      cell(t('console.signed_in_at'), publicPart ? relativeMoment(words, publicPart.signedInAt, now) : ''),
      cell(t('console.seen_at'), publicPart ? relativeMoment(words, publicPart.seenAt, now) : ''),
      cell(t('session.expires'), relativeMoment(words, expiresAt, now)),
      plainCell(sessionMenu(words, key, publicPart?.username ?? '')),
    ],
  )
}

function deviceOf(words: Words, { userAgent, address }: NonNullable<Listed['publicPart']>, view: SessionsView) {
  const device = view.deviceName(words, userAgent)
  return html`${deviceIcon(userAgent)} ${device}<br><span class="dim">${address ?? words.t('device.address_unknown')}</span>`
}

function pageUrl(username: string, after?: string): string {
  const query = new URLSearchParams({ ...(username && { username }), ...(after && { after }) })
  return query.size === 0 ? OWN_PATHS.consoleSessions : `${OWN_PATHS.consoleSessions}?${query}`
}
