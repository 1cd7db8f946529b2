// The buttons that lead to the question whether a session, or all of its user, shall end.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import { icon } from '../icon.ts'
import type { Html } from '../layout.ts'
import type { Words } from '../words/words.ts'

export function endButtons(words: Words, key: string, user: string) {
  return endForm(words, key, user, { form: 'actions', button: 'button small quiet' })
}

/** One menu for all that can be done with a session. It opens without scripts. */
export function sessionMenu(words: Words, key: string, user: string): Html {
  const { t } = words
  return html`<details class="menu" name="menu"><summary aria-label="${t('console.action_label', { user })}" title="${t('console.action')}">${icon('more')}<span class="unseen">${t('console.action')}</span></summary>
<div class="items"><a class="item" href="${OWN_PATHS.consoleSession}?key=${key}" aria-label="${t('console.details_label', { user })}">${t('console.details')}</a>
${endForm(words, key, user, { form: '', button: 'item' })}</div></details>`
}

interface Looks {
  readonly form: string
  readonly button: string
}

function endForm({ t }: Words, key: string, user: string, { form, button }: Looks) {
  return html`<form method="get" action="${OWN_PATHS.consoleEndQuestion}" class="${form}"><input type="hidden" name="session" value="${key}">
<button type="submit" class="${button}" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="${button}" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}
