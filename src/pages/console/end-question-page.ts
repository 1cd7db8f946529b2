// Asks before a session, or all of its user, is ended.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Listed } from '../../session/session-listing.ts'
import type { DeviceNames } from '../device-name.ts'
import { moment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'

interface EndQuestion {
  readonly viewer: Viewer
  readonly session: Listed
  readonly deviceName: DeviceNames
  /** The session that looks at the page is among those that would end. */
  readonly isOwn: boolean
  readonly all: boolean
}

export function endQuestionPage(words: Words, { viewer, session, deviceName, isOwn, all }: EndQuestion): string {
  const { t } = words
  const { key, publicPart } = session
  const user = publicPart?.username ?? t('console.unreadable')
  return consoleFrame(words, {
    section: 'sessions',
    viewer,
    title: all ? t('console.end_all_question', { user }) : t('console.end_question', { user }),
    body: html`<p class="lead">${all ? t('console.end_all_effect') : t('console.end_effect')}</p>
${isOwn ? html`<div class="notice bad"><p>${t('console.end_own')}</p></div>` : ''}
${publicPart && !all ? html`<p>${deviceName(words, publicPart.userAgent)} · ${publicPart.address ?? t('device.address_unknown')} · ${moment(words, publicPart.signedInAt)}</p>` : ''}
<form method="post" action="${OWN_PATHS.endSession}" class="actions"><input type="hidden" name="session" value="${key}">
${all ? html`<input type="hidden" name="all" value="yes">` : ''}
<button type="submit" class="button small">${all ? t('console.end_all') : t('console.end')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleSessions}">${t('console.end_no')}</a></form>`,
  })
}
