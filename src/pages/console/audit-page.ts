// The audit trail: what happened, the newest first, with filters, further pages, and files for other programs.
import { html } from 'hono/html'
import { AUDITED } from '../../observe/audit/audit-event.ts'
import type { FoundPage } from '../../observe/audit/trail-reader.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Html } from '../layout.ts'
import type { Words } from '../words/words.ts'
import { type AuditNames, auditColumns, auditRow, auditUrl } from './audit-row.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'
import { table } from './table.ts'

/** As it was typed in; empty where nothing was. */
export interface AuditQuestion {
  readonly requestId: string
  readonly user: string
  readonly event: string
  readonly session: string
  readonly since: string
  readonly until: string
  /** Minutes from the reader's time zone to UTC. */
  readonly zone: string
  /** The page that begins there. */
  readonly before: string
}

export interface AuditView {
  readonly viewer: Viewer
  readonly question: AuditQuestion
  /** Absent while the store is away. */
  readonly page: FoundPage | undefined
  readonly pageSize: number
  /** How many events there can be. */
  readonly keep: number
  readonly names: AuditNames
}

export function auditPage(words: Words, view: AuditView): string {
  const { t } = words
  const { page, question } = view
  return consoleFrame(words, {
    section: 'audit',
    viewer: view.viewer,
    scripts: ['audit.js', 'copy.js'],
    body: html`${view.keep === 0 ? html`<p class="notice">${t('audit.off')}</p>` : ''}
${filterForm(words, question)}
${page ? found(words, view, page) : html`<p class="notice bad" role="alert">${t('console.store_away')}</p>`}`,
  })
}

function filterForm({ t }: Words, { requestId, user, event, session, since, until, zone }: AuditQuestion): Html {
  const options = AUDITED.map(
    code => html`<option value="${code}" ${code === event ? html`selected` : ''}>${t(`audit.event_${code}`)}</option>`,
  )
  const isFiltered = [requestId, user, event, session, since, until].some(given => given !== '')
  return html`<details class="filters" ${isFiltered ? html`open` : ''}><summary>${t('audit.filters')}</summary>
<form method="get" action="${OWN_PATHS.consoleAudit}" class="search fields" role="search" id="filters">
<label>${t('audit.request')}<input name="requestId" value="${requestId}" autocomplete="off" spellcheck="false"></label>
<label>${t('console.user')}<input name="user" value="${user}" autocomplete="off"></label>
<label>${t('audit.event')}<select name="event"><option value="">${t('audit.all_events')}</option>${options}</select></label>
<label>${t('audit.session')}<input name="session" value="${session}" autocomplete="off" spellcheck="false"></label>
<label>${t('audit.since')}<input type="datetime-local" name="since" value="${since}"></label>
<label>${t('audit.until')}<input type="datetime-local" name="until" value="${until}"></label>
<input type="hidden" name="zone" value="${zone}">
<button type="submit" class="button small">${t('console.search_button')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleAudit}">${t('audit.clear')}</a>
</form></details>`
}

function found(words: Words, view: AuditView, page: FoundPage): Html {
  const { t } = words
  const { question, names } = view
  const { events, unreadable } = page
  const rows = events.map(event => auditRow(words, event, names))
  return html`<p class="exports"><a href="${auditUrl(question, OWN_PATHS.consoleAuditCsv)}" download>${t('audit.csv')}</a>
<a href="${auditUrl(question, OWN_PATHS.consoleAuditJson)}" download>${t('audit.jsonl')}</a></p>
<p id="news" role="status" class="hint"></p>
<p id="copied" aria-live="polite" class="unseen"></p>
${unreadable > 0 ? html`<p class="notice">${t('audit.unreadable', { count: unreadable })}</p>` : ''}
${events.length === 0 ? html`<p class="hint" id="nothing">${t('audit.nothing')}</p>` : ''}
<div id="trail" ${liveAddress(question, page)} ${events.length === 0 ? html`hidden` : ''}>${table({ label: { text: t('console.audit') }, columns: auditColumns(words, names), rows })}</div>
${further(words, view, page)}`
}

/** What is new stands at the top: only where the top is shown, and the end is open. */
function liveAddress(question: AuditQuestion, { events }: FoundPage): Html | string {
  if (question.before !== '' || question.until !== '') return ''
  const url = auditUrl({ ...question, live: 'yes' }, OWN_PATHS.consoleAuditLive)
  return html`data-live="${url}" data-after="${events[0]?.position ?? ''}"`
}

function further({ t }: Words, { question, pageSize }: AuditView, { events, next }: FoundPage): Html {
  const older = (label: string, before: string) =>
    html`<a href="${auditUrl({ ...question, before }, OWN_PATHS.consoleAudit)}" rel="next">${label}</a>`
  const newest = html`<a href="${auditUrl({ ...question, before: '' }, OWN_PATHS.consoleAudit)}">${t('audit.newest')}</a> `
  const isWhole = events.length >= pageSize
  return html`<p class="pages">${question.before === '' ? '' : newest}
${next === undefined ? html`<span class="hint">${t('audit.end')}</span>` : isWhole ? older(t('audit.older'), next) : html`${t('audit.looked')} ${older(t('audit.further'), next)}`}</p>`
}
