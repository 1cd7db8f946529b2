// Writes the tables of events and their fields into docs/logging.md, from the rows of src/events.ts: `npm run docs`.
// A test fails when the two differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMON_FIELDS, EVENTS, type EventRow } from '../src/events.ts'
import { withTable } from './generated-table.ts'

export const EVENTS_PAGE = new URL('../docs/logging.md', import.meta.url)

export function withEvents(page: string): string {
  const fields = Object.entries(COMMON_FIELDS).map(([name, sentence]) => [`\`${name}\``, sentence])
  const events = Object.entries(EVENTS).map(eventRow)
  return withTable(withTable(page, ['field', 'means'], fields), ['event', 'level', 'means'], events)
}

function eventRow([code, { level, sentence, fields, audited }]: [string, EventRow]): string[] {
  const own = fields.map(field => `\`${field}\``).join(', ')
  return [`\`${code}\`${audited ? '*' : ''}`, level, own ? `${sentence} (${own})` : sentence]
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(EVENTS_PAGE, withEvents(readFileSync(EVENTS_PAGE, 'utf8')))
