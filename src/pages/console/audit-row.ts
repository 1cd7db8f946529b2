// One event of the audit trail as a row of its table, with links to everything about its request, user and session.
import { html } from 'hono/html'
import { AUDITED, type AuditEvent } from '../../observe/audit/audit-event.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import type { DeviceNames } from '../device-name.ts'
import { deviceIcon, icon } from '../icon.ts'
import type { Html } from '../layout.ts'
import { moment } from '../moment.ts'
import type { Words } from '../words/words.ts'
import { factLines } from './audit-facts.ts'
import { longCell, row } from './table.ts'

/** What is known under another name. */
export interface AuditNames {
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providers: ReadonlyMap<string, string> | undefined
  readonly deviceName: DeviceNames
}

/** What stands in a column of its own, or says nothing to people. */
const ELSEWHERE = new Set(['user', 'sub', 'address', 'userAgent', 'provider', 'requestId', 'session'])

/** Of the table that the rows stand in. */
export function auditColumns({ t }: Words, { providers }: AuditNames): string[] {
  return [
    t('audit.time'),
    t('audit.event'),
    t('console.user'),
    t('audit.from'),
    ...(providers ? [t('session.provider')] : []),
    t('audit.request'),
  ]
}

export function auditRow(
  words: Words,
  { time, event, facts }: AuditEvent,
  { providers, deviceName }: AuditNames,
): Html {
  const { t } = words
  const text = (name: string) => String(facts[name] ?? '')
  const [provider, userAgent] = [text('provider'), text('userAgent')]
  return row(moment(words, time), [
    longCell(t('audit.event'), html`${eventName(words, event)}${details(words, facts)}`),
    longCell(t('console.user'), linked('user', text('user'))),
    longCell(
      t('audit.from'),
      html`${text('address')}<br><span class="small" title="${userAgent}">${userAgent && html`${deviceIcon(userAgent)} ${deviceName(words, userAgent)}`}</span>`,
    ),
    ...(providers ? [longCell(t('session.provider'), providers.get(provider) ?? provider)] : []),
    longCell(
      t('audit.request'),
      html`${linked('requestId', text('requestId'))}${copyButton(words, text('requestId'))} ${facts.session === undefined ? '' : html`<span class="small">${t('audit.session')} ${linked('session', text('session'))}</span>`}`,
    ),
  ])
}

/** Seen only where a script can copy. */
function copyButton({ t }: Words, id: string): Html {
  if (id === '') return html``
  return html` <button type="button" class="copy" data-copy="${id}" data-copied="${t('audit.copied')}" title="${t('audit.copy')}" aria-label="${t('audit.copy_label', { id })}">${icon('copy')}</button>`
}

/** Of an event that this version does not know, its code. */
function eventName({ t }: Words, event: string): Html {
  const code = AUDITED.find(known => known === event)
  return code ? html`<strong>${t(`audit.event_${code}`)}</strong>` : html`<code>${event}</code>`
}

function details(words: Words, facts: AuditEvent['facts']): Html {
  return factLines(words, Object.fromEntries(Object.entries(facts).filter(([name]) => !ELSEWHERE.has(name))))
}

function linked(name: 'user' | 'requestId' | 'session', value: string): Html {
  if (value === '') return html``
  return html`<a href="${auditUrl({ [name]: value }, OWN_PATHS.consoleAudit)}"><code>${value}</code></a>`
}

/** With what is not empty of a question. */
export function auditUrl(question: object, path: string): string {
  const given = Object.entries(question).filter(([, value]) => value !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
