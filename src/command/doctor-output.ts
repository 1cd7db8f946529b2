// How the doctor's findings look: one line each on a terminal or in a file, or one document for programs.
import { styleText } from 'node:util'
import type { Finding } from '../observe/doctor/finding.ts'

const MARKS = { good: '✔', warning: '!', failure: '✖' } as const
const COLOURS = { good: 'green', warning: 'yellow', failure: 'red' } as const

export function findingLines(findings: readonly Finding[], colours: boolean): string {
  const lines = findings.map(finding => `${findingLine(finding, colours)}\n`)
  return `${lines.join('')}${summary(findings)}\n`
}

function findingLine({ name, level, seen, remedy }: Finding, colours: boolean): string {
  const mark = colours ? styleText(COLOURS[level], MARKS[level], { validateStream: false }) : MARKS[level]
  // One line a probe, whatever somebody has answered.
  return `${mark} ${name}: ${seen}${remedy && ` → ${remedy}`}`.replace(/[\r\n]+/g, ' ')
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
