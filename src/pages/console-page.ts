// The console: who is signed in, ending a session, and the settings in effect.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Listed } from '../session/session-listing.ts'
import type { AdviceCode } from '../settings/advice.ts'
import { roleName } from './account-page.ts'
import { languageSwitch } from './language-switch.ts'
import { page } from './layout.ts'
import { moment } from './moment.ts'
import type { Words } from './words/words.ts'

interface ConsoleView {
  readonly sessions: readonly Listed[]
  /** The session that looks at the page. */
  readonly ownKey: string
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providerNames: ReadonlyMap<string, string> | undefined
  readonly username: string
  readonly next: string | undefined
  /** What a developer should know about how it runs. */
  readonly warnings: readonly AdviceCode[]
  /** Name and shown value; secrets are hidden already. */
  readonly settings: readonly (readonly [string, string])[]
}

export function consolePage(words: Words, view: ConsoleView): string {
  const { t } = words
  return page({
    words,
    title: t('console.title'),
    script: 'moments.js',
    style: 'console.css',
    wide: true,
    body: html`
<h1>${t('console.title')}</h1>
<nav><a href="${OWN_PATHS.consoleHealth}">${t('health.title')}</a> <a href="/">${t('page.home')}</a></nav>
${languageSwitch(words, OWN_PATHS.console)}
${view.warnings.map(code => html`<div class="notice bad"><p>${t(`advice.${code}`)}</p></div>`)}
<section aria-labelledby="sessions">
<h2 id="sessions">${t('console.sessions')}</h2>
<form method="get" class="search" role="search">
<label for="username">${t('console.search')}</label>
<input id="username" name="username" value="${view.username}" autocomplete="off">
<button type="submit" class="button small">${t('console.search_button')}</button>
</form>
${view.sessions.length === 0 ? html`<p class="hint">${t('console.nobody')}</p>` : sessionTable(words, view)}
${view.next ? html`<p><a href="${nextUrl(view.username, view.next)}">${t('console.next_page')}</a></p>` : ''}
</section>
<section aria-labelledby="settings">
<h2 id="settings">${t('console.settings')}</h2>
<table role="table" aria-labelledby="settings">
${headRow([t('console.setting_name'), t('console.setting_value')])}
<tbody role="rowgroup">${view.settings.map(([name, value]) => html`<tr role="row"><th scope="row" role="rowheader"><code>${name}</code></th><td role="cell"><code>${value}</code></td></tr>`)}</tbody>
</table>
</section>`,
  })
}

function sessionTable(words: Words, { sessions, ownKey, providerNames }: ConsoleView) {
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
  return html`<table role="table" aria-labelledby="sessions">
${headRow(columns)}
<tbody role="rowgroup">${sessions.map(session => sessionRow(words, session, session.key === ownKey, providerNames))}</tbody>
</table>`
}

/** The roles are said once more because on a phone, where the table is laid out as a list, browsers forget them. */
export function headRow(names: readonly string[]) {
  const cells = names.map(name => html`<th scope="col" role="columnheader">${name}</th>`)
  return html`<thead role="rowgroup"><tr role="row">${cells}</tr></thead>`
}

function cell(label: string, content: unknown) {
  return html`<td role="cell" data-label="${label}"><span>${content}</span></td>`
}

function sessionRow(
  words: Words,
  { key, publicPart, expiresAt }: Listed,
  own: boolean,
  providerNames: ConsoleView['providerNames'],
) {
  const { t } = words
  const { provider = '' } = publicPart ?? {}
  const who = publicPart ? html`${publicPart.nickname} <code>${publicPart.username}</code>` : t('console.unreadable')
  return html`<tr role="row">
<th scope="row" role="rowheader">${who}${own ? html` <span class="tag">${t('console.own_session')}</span>` : ''}</th>
${providerNames ? cell(t('session.provider'), providerNames.get(provider) ?? provider) : ''}
${cell(t('session.role'), publicPart ? roleName(words, publicPart.userRole) : '')}
${cell(t('console.signed_in_at'), publicPart ? moment(words, publicPart.signedInAt) : '')}
${cell(t('console.seen_at'), publicPart ? moment(words, publicPart.seenAt) : '')}
${cell(t('session.expires'), moment(words, expiresAt))}
<td role="cell">${endButtons(words, key, publicPart?.username ?? '')}</td>
</tr>`
}

function endButtons({ t }: Words, key: string, user: string) {
  return html`<form method="post" action="${OWN_PATHS.endSession}" class="actions"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="button small quiet" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}

function nextUrl(username: string, after: string): string {
  const query = new URLSearchParams({ ...(username && { username }), after })
  return `${OWN_PATHS.console}?${query}`
}
