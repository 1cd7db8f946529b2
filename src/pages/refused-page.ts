// The page for somebody who is signed in and not allowed: as whom, and how to come back as somebody else.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Session } from '../session/session-record.ts'
import { roleName } from './account-page.ts'
import { noticeFrame, reference } from './notice-page.ts'
import type { Words } from './words/words.ts'

/** Of the form that signs out: where the next sign-in leads. */
export const RETURN_FIELD = 'return'

interface Refusal {
  readonly requestId: string
  /** Where another account would be led. */
  readonly wanted: string | undefined
}

export function refusedPage(words: Words, { userInfo, userRole }: Session, { requestId, wanted }: Refusal): string {
  const { nickname, username } = userInfo
  const { t } = words
  return noticeFrame(
    words,
    'refused',
    html`<dl>
<div><dt>${t('refused.account')}</dt><dd>${nickname || username} <code>${username}</code></dd></div>
<div><dt>${t('session.role')}</dt><dd>${roleName(words, userRole)} <code>${userRole}</code></dd></div>
</dl>
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">${t('refused.other_account')}</button>${wanted === undefined ? '' : html`<input type="hidden" name="${RETURN_FIELD}" value="${wanted}">`}</form>
<a class="button quiet" href="/">${t('page.home')}</a>
<p class="hint">${t('notice.refused.remedy')}</p>
${reference(words, requestId)}`,
  )
}
