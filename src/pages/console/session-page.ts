// One session: its facts while it lives, the way to end it, and its own timeline.
import { html } from 'hono/html'
import type { AuditEvent } from '../../observe/audit/audit-event.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { shortKey } from '../../session/session-facts.ts'
import type { Listed } from '../../session/session-listing.ts'
import { roleName } from '../account-page.ts'
import { deviceIcon } from '../icon.ts'
import { moment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { type AuditNames, auditColumns, auditRow, auditUrl } from './audit-row.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'
import { endButtons } from './end-buttons.ts'
import { table } from './table.ts'

export interface SessionView {
  readonly viewer: Viewer
  readonly key: string
  /** Absent if it has ended. */
  readonly session: Listed | undefined
  readonly isOwn: boolean
  /** The newest first. */
  readonly events: readonly AuditEvent[]
  readonly areMore: boolean
  readonly names: AuditNames
}

export function sessionPage(words: Words, view: SessionView): string {
  const { t } = words
  const { key, session, areMore } = view
  return consoleFrame(words, {
    section: 'sessions',
    viewer: view.viewer,
    scripts: ['copy.js'],
    title: t('console.session', { session: shortKey(key) }),
    body: html`<p><a href="${OWN_PATHS.consoleSessions}">${t('console.back_to_list')}</a></p>
${session ? facts(words, session, view) : html`<div class="notice"><p>${t('console.session_gone')}</p></div>`}
<h2 id="timeline">${t('console.timeline')}</h2>
<p id="copied" aria-live="polite" class="unseen"></p>
${view.events.length > 0 ? timeline(words, view) : html`<p class="hint">${t('console.no_events')}</p>`}
${areMore ? html`<p><a href="${auditUrl({ session: shortKey(key) }, OWN_PATHS.consoleAudit)}">${t('console.all_events')}</a></p>` : ''}`,
  })
}

function facts(words: Words, { key, publicPart, expiresAt }: Listed, { isOwn, names }: SessionView) {
  const { t } = words
  const own = isOwn ? html` <span class="tag">${t('console.own_session')}</span>` : ''
  if (!publicPart) return html`<p>${t('console.unreadable')}</p>${endButtons(words, key, '')}`
  const { username, nickname, userRole, provider = '', userAgent = '', address } = publicPart
  return html`<dl class="facts">
${fact(t('console.user'), html`${nickname} <code>${username}</code>${own}`)}
${names.providers ? fact(t('session.provider'), names.providers.get(provider) ?? provider) : ''}
${fact(t('session.role'), roleName(words, userRole))}
${fact(t('device.title'), html`${deviceIcon(userAgent)} ${names.deviceName(words, userAgent)}${userAgent === '' ? '' : html`<br><code class="dim">${userAgent}</code>`}`)}
${fact(t('device.address'), address ?? t('device.address_unknown'))}
${fact(t('console.signed_in_at'), moment(words, publicPart.signedInAt))}
${fact(t('console.seen_at'), moment(words, publicPart.seenAt))}
${fact(t('session.expires'), moment(words, expiresAt))}
</dl>
${endButtons(words, key, username)}`
}

function fact(name: string, value: unknown) {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}

function timeline(words: Words, { events, names }: SessionView) {
  const rows = events.map(event => auditRow(words, event, names))
  return table({ label: { by: 'timeline' }, columns: auditColumns(words, names), rows })
}
