// A log whose lines a test can read.
import { COMMON_FIELDS, EVENTS } from '../../src/events.ts'
import type { Log } from '../../src/index.ts'

export interface Line {
  readonly level: 'info' | 'warn' | 'error'
  /** The code of the event. */
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
}

export function createTestLog(): { lines: Line[]; log: Log } {
  const lines: Line[] = []
  const write = (level: Line['level']) => (given: object) => {
    const { event, ...fields } = given as { event: string }
    lines.push({ level, event, fields })
  }
  return { lines, log: { info: write('info'), warn: write('warn'), error: write('error') } }
}

/** Fields that docs/logging.md does not name for their event. `count` is the one of repeats. */
export function undocumentedFields(lines: readonly Line[]): string[] {
  const rows: Readonly<Record<string, { readonly fields: readonly string[] }>> = EVENTS
  return lines.flatMap(({ event, fields }) => {
    const known = [...Object.keys(COMMON_FIELDS), ...(rows[event]?.fields ?? []), 'count']
    return Object.keys(fields).flatMap(name => (known.includes(name) ? [] : `${event}: ${name}`))
  })
}
