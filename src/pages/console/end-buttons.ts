// The buttons that lead to the question whether a session, or all of its user, shall end.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Words } from '../words/words.ts'

export function endButtons({ t }: Words, key: string, user: string) {
  return html`<form method="get" action="${OWN_PATHS.consoleEndQuestion}" class="actions"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="button small quiet" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}
