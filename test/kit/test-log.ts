// A log whose lines a test can read.
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
