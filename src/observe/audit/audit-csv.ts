// Events of the audit trail as CSV (RFC 4180), for a spreadsheet.
import type { AuditEvent } from './audit-event.ts'

/** Those that most events have; whatever else one says stands in the last column, as JSON. */
const COLUMNS = ['user', 'sub', 'session', 'provider', 'address', 'userAgent', 'reason', 'requestId', 'worker'] as const

/** Spreadsheets in Chinese take a file without it for another encoding. */
const BYTE_ORDER_MARK = '\uFEFF'
/** A spreadsheet takes what begins so for a formula, and runs it; some of them also the wide signs of Chinese keyboards. */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n]/

export const CSV_HEAD = BYTE_ORDER_MARK + line(['time', 'event', ...COLUMNS, 'more'])

export function csvLine({ time, event, facts }: AuditEvent): string {
  const common: Readonly<Record<string, unknown>> = facts
  const more = Object.entries(facts).filter(([name]) => !COLUMNS.some(column => column === name))
  return line([
    new Date(time).toISOString(),
    event,
    ...COLUMNS.map(name => String(common[name] ?? '')),
    more.length === 0 ? '' : JSON.stringify(Object.fromEntries(more)),
  ])
}

function line(cells: readonly string[]): string {
  return `${cells.map(quoted).join(',')}\r\n`
}

function quoted(cell: string): string {
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell
  return `"${harmless.replaceAll('"', '""')}"`
}
