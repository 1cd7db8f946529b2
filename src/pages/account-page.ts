// The account page, which is also the home page where there is no application behind: who you are, until when, and the
// way out, here or everywhere.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { page } from './layout.ts'
import { moment } from './moment.ts'
import type { Words } from './words/words.ts'

/** A role of the operator's choice is its own name. */
export function roleName({ t }: Words, role: string): string {
  return role === 'developer' || role === 'common' ? t(`role.${role}`) : role
}

/** `providerName` only where there are several. */
export function accountPage(words: Words, { session, expiresAt }: LoadedSession, providerName?: string): string {
  const { nickname, username, ou_name, email } = session.userInfo
  const { t } = words
  return page({
    words,
    title: t('account.title'),
    script: 'moments.js',
    body: html`
<h1>${t('account.greeting', { name: nickname || username })}</h1>
<dl>
${row(t('account.username'), username)}
${row(t('account.organisation'), ou_name)}
${row(t('account.email'), email)}
${row(t('session.provider'), providerName)}
${row(t('session.role'), html`${roleName(words, session.userRole)} <code>${session.userRole}</code>`)}
${row(t('session.expires'), moment(words, expiresAt))}
</dl>
${session.userRole === 'developer' ? html`<p><a class="button quiet" href="${OWN_PATHS.console}">${t('console.title')}</a></p>` : ''}
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">${t('sign_out.title')}</button></form>
<form method="post" action="${OWN_PATHS.signOutEverywhere}"><button type="submit" class="button quiet">${t('account.sign_out_everywhere')}</button></form>`,
  })
}

function row(name: string, value: unknown) {
  return value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : ''
}
