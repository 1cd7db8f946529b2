// The page for somebody who is signed in and not allowed: as whom, and how to come back as somebody else.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Session } from '../session/session-record.ts'
import type { Rule } from '../settings/config/config-file.ts'
import { CONSOLE_ROLE } from '../settings/config/role-names.ts'
import { roleName } from './account-page.ts'
import type { Html } from './layout.ts'
import { noticeFrame, reference } from './notice-page.ts'
import { displayName } from './shown-text.ts'
import type { Words } from './words/words.ts'

/** Of the form that signs out: where the next sign-in leads. */
export const RETURN_FIELD = 'return'

interface Refusal {
  readonly requestId: string
  /** Where another account would be led. */
  readonly wanted: string | undefined
  /** The rule that refused, if it was one. */
  readonly rule?: Rule | undefined
}

export function refusedPage(
  words: Words,
  { userInfo, userRole }: Session,
  { requestId, wanted, rule }: Refusal,
): string {
  const { username } = userInfo
  const { t } = words
  return noticeFrame(
    words,
    'refused',
    html`<dl>
<div><dt>${t('refused.account')}</dt><dd>${displayName(userInfo)} <code>${username}</code></dd></div>
<div><dt>${t('session.role')}</dt><dd>${roleName(words, userRole)} <code>${userRole}</code></dd></div>
${rule ? missingPart(words, rule) : ''}${rule && userRole === CONSOLE_ROLE ? rulePart(words, rule) : ''}</dl>
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">${t('refused.other_account')}</button>${wanted === undefined ? '' : html`<input type="hidden" name="${RETURN_FIELD}" value="${wanted}">`}</form>
<a class="button quiet" href="/">${t('page.home')}</a>
<p class="hint">${t('notice.refused.remedy')}</p>
${reference(words, requestId)}`,
  )
}

/** Of which kind the permission is that would admit. Its name is for those who look after the rules. */
function missingPart({ t, lang }: Words, { roles, groups, users }: Rule): Html {
  const kinds = [
    ...(roles ? [t('refused.role')] : []),
    ...(groups ? [t('refused.group')] : []),
    ...(users ? [t('refused.user')] : []),
  ]
  const any = new Intl.ListFormat(lang, { type: 'disjunction' }).format(kinds)
  return html`<div><dt>${t('refused.missing')}</dt><dd>${t('refused.only', { kinds: any })}</dd></div>`
}

function rulePart({ t }: Words, rule: Rule): Html {
  return html`<div><dt>${t('refused.rule')}</dt><dd><a href="${OWN_PATHS.consoleRules}"><code>${JSON.stringify(rule)}</code></a></dd></div>`
}
