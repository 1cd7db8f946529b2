// Words that must not come back in the English that people read. Rows and pages are read, not the source: code may use any word.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { COMMANDS, EXIT_CODES, GLOBAL_OPTIONS, START } from '../../src/cli/commands/table.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { ERRORS } from '../../src/errors.ts'
import { COMMON_FIELDS, EVENTS } from '../../src/events.ts'
import { METRICS } from '../../src/observe/metrics.ts'
import { PROCESS_METRICS } from '../../src/observe/process-metrics.ts'
import { TABLES } from '../../src/text/text.ts'

const ROOT = new URL('../../', import.meta.url)

/** Each with what to write instead. */
const AVOID: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\bcounts?\b(?! (?:are|of)\b)/i, 'is valid, applies, is treated as'],
  [/\b(?<!\bthere )(?:is|are) no\b(?! (?:longer|more)\b)/i, 'is not a'],
  [/\bwhoever\b/i, 'the user who'],
  [/\b(?:some|any|every)body\b/i, 'a user, anyone, everyone'],
  [/\bnobody\b/i, 'no one, no user'],
  [/\bbrought\b/i, 'sent'],
  [/\banew\b/i, 'again'],
  [/\bat hand\b/i, 'available'],
  [/\bcannot be had\b/i, 'is unavailable'],
]

/** Every text in a row, however deep. Chinese, single words (codes), code in backquotes and values in braces are left out. */
function textsIn(value: unknown, path: string): [path: string, text: string][] {
  if (typeof value === 'string' && !value.includes(' ')) return []
  if (typeof value === 'string')
    return /\p{Script=Han}/u.test(value.replaceAll(/`[^`]*`/g, ''))
      ? []
      : [[path, value.replaceAll(/`[^`]*`|\{\w+\}/g, '_')]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, `${path}.${key}`))
}

const TEXTS = Object.entries({
  text: TABLES.en,
  events: EVENTS,
  fields: COMMON_FIELDS,
  errors: ERRORS,
  settings: SETTINGS,
  metrics: METRICS,
  processMetrics: PROCESS_METRICS,
  commands: COMMANDS,
  start: START,
  options: GLOBAL_OPTIONS,
  exitCodes: EXIT_CODES,
}).flatMap(([name, rows]) => textsIn(rows, name))

test('English texts for users and operators have no word that the style guide avoids', () => {
  assert.ok(TEXTS.length > 1000, `only ${TEXTS.length} texts were read`)
  const found = TEXTS.flatMap(([path, text]) =>
    AVOID.filter(([word]) => word.test(text)).map(([, instead]) => `${path}: "${text}"; write: ${instead}`),
  )
  assert.deepEqual(found, [])
})

/** The prose of a page: without code, and without the label `count` of a metric. */
function proseIn(page: string): string {
  return page.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`|\bcount,/g, '_')
}

test('the English documentation has no word that the style guide avoids', () => {
  const pages = globSync(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/*.md', 'examples/*/README.md'], {
    cwd: ROOT,
  })
  assert.ok(pages.length > 25, `only ${pages.length} pages were read`)
  const found = pages.flatMap(page =>
    proseIn(readFileSync(new URL(page, ROOT), 'utf8'))
      .split('\n')
      .flatMap(line =>
        AVOID.filter(([word]) => word.test(line)).map(([, instead]) => `${page}: "${line}"; write: ${instead}`),
      ),
  )
  assert.deepEqual(found, [])
})

test('every word to avoid is found in a sentence, and the noun "counts" and other allowed words are not', () => {
  const finds = (text: string) => AVOID.some(([word]) => word.test(text))
  for (const text of [
    'it counts',
    'is no page',
    'whoever',
    'somebody',
    'Nobody may',
    'brought',
    'anew',
    'at hand',
    'cannot be had',
  ])
    assert.ok(finds(text), text)
  for (const text of [
    'Session counts are exact',
    'Counts are for this process',
    'is no longer valid',
    'the account',
    'no one',
    'There is no page',
  ])
    assert.ok(!finds(text), text)
})
