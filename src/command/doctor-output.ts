// How the doctor's findings look: one line each on a terminal or in a file, or one document for programs.
import { safeText } from '../observe/audit/safe-text.ts'
import type { Finding } from '../observe/doctor/finding.ts'
import type { Paint } from './terminal/colours.ts'

const MARKS = { good: '✔', warning: '!', failure: '✖' } as const
const COLOURS = { good: 'green', warning: 'yellow', failure: 'red' } as const

export function findingLines(findings: readonly Finding[], paint: Paint): string {
  const lines = findings.map(finding => `${findingLine(finding, paint)}\n`)
  return `${lines.join('')}${summary(findings)}\n`
}

function findingLine({ name, level, seen, remedy }: Finding, paint: Paint): string {
  // One line a probe, whatever somebody has answered.
  const line = `${name}: ${seen}${remedy && ` → ${remedy}`}`.replace(/[\r\n]+/g, ' ')
  return `${paint(COLOURS[level], MARKS[level])} ${safeText(line)}`
}

function summary(findings: readonly Finding[]): string {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  return `${count('good')} good, ${count('warning')} warnings, ${count('failure')} failures`
}

/** `ok` is whether it stands in the way: a warning does not. */
export function toJson(findings: readonly Finding[], more: object = {}): string {
  const checks = findings.map(({ name, level, seen, remedy }) => ({
    name,
    ok: level !== 'failure',
    level,
    seen,
    remedy,
  }))
  return `${JSON.stringify({ checks, ...more }, null, 2)}\n`
}
