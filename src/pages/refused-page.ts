// The page for somebody who is signed in and not allowed: as whom, and how to come back as somebody else.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Session } from '../session/session-record.ts'
import { roleName } from './account-page.ts'
import { NOTICES, noticeFrame, reference } from './notice-page.ts'

/** Of the form that signs out: where the next sign-in leads. */
export const RETURN_FIELD = 'return'

interface Refusal {
  readonly requestId: string
  /** Where another account would be led. */
  readonly wanted: string | undefined
}

export function refusedPage(appName: string, { userInfo, userRole }: Session, { requestId, wanted }: Refusal): string {
  const { nickname, username } = userInfo
  return noticeFrame(
    appName,
    'refused',
    html`<dl>
<div><dt>当前账号</dt><dd>${nickname || username} <code>${username}</code></dd></div>
<div><dt>角色</dt><dd>${roleName(userRole)} <code>${userRole}</code></dd></div>
</dl>
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">换一个账号登录</button>${wanted === undefined ? '' : html`<input type="hidden" name="${RETURN_FIELD}" value="${wanted}">`}</form>
<a class="button quiet" href="/">返回首页</a>
<p class="hint">${NOTICES.refused.remedy}</p>
${reference(requestId)}`,
  )
}
