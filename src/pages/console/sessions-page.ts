// Who is signed in, and ending a session.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Listed } from '../../session/session-listing.ts'
import { roleName } from '../account-page.ts'
import { moment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame } from './console-frame.ts'
import { cell, plainCell, row, table } from './table.ts'

interface SessionsView {
  readonly sessions: readonly Listed[]
  /** The session that looks at the page. */
  readonly ownKey: string
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providerNames: ReadonlyMap<string, string> | undefined
  readonly username: string
  readonly next: string | undefined
}

export function sessionsPage(words: Words, view: SessionsView): string {
  const { t } = words
  return consoleFrame(words, {
    section: 'sessions',
    body: html`<form method="get" class="search" role="search">
<label for="username">${t('console.search')}</label>
<input id="username" name="username" value="${view.username}" autocomplete="off">
<button type="submit" class="button small">${t('console.search_button')}</button>
</form>
${view.sessions.length === 0 ? html`<p class="hint">${t('console.nobody')}</p>` : sessionTable(words, view)}
${view.next ? html`<p><a href="${nextUrl(view.username, view.next)}">${t('console.next_page')}</a></p>` : ''}`,
  })
}

function sessionTable(words: Words, { sessions, ownKey, providerNames }: SessionsView) {
  const { t } = words
  const columns = [
    t('console.user'),
    ...(providerNames ? [t('session.provider')] : []),
    t('session.role'),
    t('console.signed_in_at'),
    t('console.seen_at'),
    t('session.expires'),
    t('console.action'),
  ]
  const rows = sessions.map(session => sessionRow(words, session, session.key === ownKey, providerNames))
  return table({ label: { text: t('console.sessions') }, columns, rows })
}

function sessionRow(
  words: Words,
  { key, publicPart, expiresAt }: Listed,
  own: boolean,
  providerNames: SessionsView['providerNames'],
) {
  const { t } = words
  const { provider = '' } = publicPart ?? {}
  const who = publicPart ? html`${publicPart.nickname} <code>${publicPart.username}</code>` : t('console.unreadable')
  return row(html`${who}${own ? html` <span class="tag">${t('console.own_session')}</span>` : ''}`, [
    ...(providerNames ? [cell(t('session.provider'), providerNames.get(provider) ?? provider)] : []),
    cell(t('session.role'), publicPart ? roleName(words, publicPart.userRole) : ''),
    cell(t('console.signed_in_at'), publicPart ? moment(words, publicPart.signedInAt) : ''),
    cell(t('console.seen_at'), publicPart ? moment(words, publicPart.seenAt) : ''),
    cell(t('session.expires'), moment(words, expiresAt)),
    plainCell(endButtons(words, key, publicPart?.username ?? '')),
  ])
}

function endButtons({ t }: Words, key: string, user: string) {
  return html`<form method="post" action="${OWN_PATHS.endSession}" class="actions"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="button small quiet" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}

function nextUrl(username: string, after: string): string {
  const query = new URLSearchParams({ ...(username && { username }), after })
  return `${OWN_PATHS.consoleSessions}?${query}`
}
