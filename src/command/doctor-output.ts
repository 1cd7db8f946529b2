// How the doctor's findings look: one line each on a terminal or in a file, or one document for programs.
import { safeText } from '../observe/audit/safe-text.ts'
import type { Finding } from '../observe/doctor/finding.ts'
import { checkLabel, type OperatorLanguage, type Phrase, phrase, phraseIn } from '../phrases.ts'
import type { Paint } from './terminal/colours.ts'

const MARKS = { good: '✔', warning: '!', failure: '✖' } as const
const COLOURS = { good: 'green', warning: 'yellow', failure: 'red' } as const

export function findingLines(findings: readonly Finding[], paint: Paint, language: OperatorLanguage): string {
  const lines = findings.map(finding => `${findingLine(finding, paint, language)}\n`)
  return `${lines.join('')}${phraseIn(language, summary(findings))}\n`
}

function findingLine({ name, level, seen, remedy }: Finding, paint: Paint, language: OperatorLanguage): string {
  const said = (given: Phrase) => phraseIn(language, given)
  const label = checkLabel(name, code => said({ code, values: {} }))
  // In English a check is called by its name, which is the one that `--json` has.
  const what = language === 'en' ? name : label
  // One line a probe, whatever somebody has answered.
  const line = said(phrase('finding_line', { what, seen })).concat(remedy ? ` → ${said(remedy)}` : '')
  return `${paint(COLOURS[level], MARKS[level])} ${safeText(line.replace(/[\r\n]+/g, ' '))}`
}

function summary(findings: readonly Finding[]): Phrase {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const [warnings, failures] = [count('warning'), count('failure')]
  return phrase('findings_count', {
    good: count('good'),
    warnings: warnings === 1 ? phrase('one_warning') : phrase('warnings_count', { count: warnings }),
    failures: failures === 1 ? phrase('one_failure') : phrase('failures_count', { count: failures }),
  })
}

/** `ok` is whether it stands in the way: a warning does not. Names are the same in every language. */
export function toJson(findings: readonly Finding[], language: OperatorLanguage, more: object = {}): string {
  const checks = findings.map(({ name, level, seen, remedy }) => ({
    name,
    ok: level !== 'failure',
    level,
    seen: phraseIn(language, seen),
    remedy: remedy ? phraseIn(language, remedy) : '',
  }))
  return `${JSON.stringify({ checks, ...more }, null, 2)}\n`
}
