// Checks a value by a schema. Each problem is one sentence: what is wrong and what was probably meant.

import { inspect } from 'node:util'
import type { z } from 'zod'
import { type Phrase, phrase, phraseIn, quoted } from '../text/text.ts'
import { issueText, phraseInIssue, withFullStop } from './issue-text.ts'
import { closestName } from './suggestions.ts'

export interface ShapeProblem {
  /** Empty for the whole value. */
  readonly path: string
  /** The unknown key at the path, if that is the problem. */
  readonly key?: string
  /** With its full stop. */
  readonly message: string
  /** The message in all languages. */
  readonly phrase: Phrase
  /** Another type was given where text is possible. */
  readonly isTextExpected?: boolean
}

type Issue = z.core.$ZodIssue
type RawIssue = z.core.$ZodRawIssue
/** The keys that an object can have, keyed by the list of its unknown keys. */
type KnownKeys = Map<readonly string[], readonly string[]>

const TYPES: Readonly<Record<string, Phrase>> = {
  string: phrase('config.type_text'),
  number: phrase('config.type_number'),
  int: phrase('config.type_whole_number'),
  boolean: phrase('config.type_boolean'),
  array: phrase('config.type_list'),
  object: phrase('config.type_object'),
  record: phrase('config.type_object'),
}
const MAX_SHOWN_LENGTH = 60
/** Creating the messages and positions of thousands takes minutes. Further problems are only counted until these are corrected. */
const MAX_PROBLEMS = 50

export function checkShape<T>(
  schema: z.ZodType<T>,
  value: unknown,
): { readonly data: T } | { readonly problems: readonly ShapeProblem[] } {
  // zod reveals an object's schema only while it creates the message of an issue.
  const knownKeys: KnownKeys = new Map()
  const error = (issue: RawIssue) => {
    if (issue.code === 'unrecognized_keys') knownKeys.set(issue.keys, keysOf(issue.inst))
    return issueText(phraseFor(issue))
  }
  const result = schema.safeParse(value, { error })
  if (result.success) return { data: result.data }
  const { issues } = result.error
  const problems = problemsIn(issues.slice(0, MAX_PROBLEMS), knownKeys).slice(0, MAX_PROBLEMS)
  const count = countOf(issues, knownKeys) - problems.length
  if (count > 0) problems.push({ path: [], message: issueText(phrase('config.more_problems', { count })) })
  return {
    problems: problems.map(({ path, message, ...rest }) => ({ ...rest, path: path.join('.'), ...described(message) })),
  }
}

/** How many problems `problemsIn` would name. */
function countOf(issues: readonly Issue[], knownKeys: KnownKeys): number {
  return issues.reduce((sum, issue) => {
    if (issue.code === 'unrecognized_keys') return sum + (knownKeys.has(issue.keys) ? issue.keys.length : 1)
    const meant = issue.code === 'invalid_union' ? issue.errors.find(isIntendedShape) : undefined
    return sum + (meant ? countOf(meant, knownKeys) : 1)
  }, 0)
}

/** Whether these are problems of the shape that was meant: a shape of another type was not. */
function isIntendedShape(issues: readonly Issue[]): boolean {
  return !issues.some(issue => issue.code === 'invalid_type' && issue.path.length === 0)
}

function described(issueMessage: string): Pick<ShapeProblem, 'message' | 'phrase'> {
  const whole = withFullStop(phraseInIssue(issueMessage))
  return { message: phraseIn('en', whole), phrase: whole }
}

interface PathProblem extends Omit<ShapeProblem, 'path' | 'phrase'> {
  readonly path: readonly PropertyKey[]
}

/** For a choice between shapes, only the problems of the shape that was meant. */
function problemsIn(issues: readonly Issue[], knownKeys: KnownKeys): PathProblem[] {
  return issues.flatMap(issue => {
    const { path } = issue
    if (issue.code === 'invalid_union') return problemsOfUnion(issue, knownKeys)
    if (issue.code !== 'unrecognized_keys')
      return [{ path, message: issue.message, ...(expectsText(issue) && { isTextExpected: true }) }]
    const known = knownKeys.get(issue.keys)
    // The schema has its own message.
    if (!known) return [{ path, message: issue.message }]
    return issue.keys.slice(0, MAX_PROBLEMS).map(key => ({ path, key, message: issueText(unknownKey(key, known)) }))
  })
}

function expectsText(issue: Issue): boolean {
  if (issue.code === 'custom') return issue.params?.type === 'text'
  return issue.code === 'invalid_type' && issue.expected === 'string'
}

function problemsOfUnion(issue: Extract<Issue, { code: 'invalid_union' }>, knownKeys: KnownKeys): PathProblem[] {
  const { path, errors } = issue
  const meant = errors.find(isIntendedShape)
  if (meant) return problemsIn(meant, knownKeys).map(problem => ({ ...problem, path: [...path, ...problem.path] }))
  const expected = errors.flatMap(issues =>
    issues.flatMap(issue => (issue.code === 'invalid_type' ? [issue.expected] : [])),
  )
  const types = [...new Set(expected.map(typePhrase))]
  const what = types.length > 0 ? types.reduce((one, other) => phrase('config.type_or', { one, other })) : OTHER_VALUE
  const isTextExpected = expected.includes('string')
  return [{ path, message: issueText(phrase('config.expected', { what })), ...(isTextExpected && { isTextExpected }) }]
}

const OTHER_VALUE = phrase('config.type_other_value')

function typePhrase(type: string): Phrase {
  return TYPES[type] ?? quoted(type)
}

/** For issues whose schema has no message. */
function phraseFor(issue: RawIssue): Phrase {
  switch (issue.code) {
    case 'invalid_type':
      return expectedNot(issue.expected, issue.input, exampleOf(issue.inst))
    case 'invalid_value':
      return unknownValue(issue.input, issue.values)
    case 'too_small':
      if (issue.origin === 'array') return phrase('config.at_least_one')
      return phrase('config.expected', { what: atLeast(String(issue.minimum), issue.origin) })
    case 'too_big':
      return phrase('config.expected', { what: atMost(String(issue.maximum), issue.origin) })
    default:
      return phrase('config.not_allowed')
  }
}

function expectedNot(expected: string, input: unknown, example: string | undefined): Phrase {
  const values = { type: typePhrase(expected), given: given(input) }
  const isReference = expected === 'string' && /^(env|file)$/.test(Object.keys(Object(input)).join())
  if (isReference) return phrase('config.data_reference_elsewhere', values)
  return example === undefined
    ? phrase('config.expected_not', values)
    : phrase('config.expected_not_example', { ...values, example })
}

/** The first of the schema's `examples`, written as in TypeScript and in YAML. */
function exampleOf(schema: RawIssue['inst']): string | undefined {
  const { examples } = (schema as z.ZodType | undefined)?.meta() ?? {}
  if (!Array.isArray(examples)) return
  return inspect(examples[0], { depth: null, breakLength: Number.POSITIVE_INFINITY, compact: true })
    .replaceAll('[ ', '[')
    .replaceAll(' ]', ']')
}

function unknownKey(name: string, known: readonly string[]): Phrase {
  const likely = closestName(name, known)
  const key = JSON.stringify(name.slice(0, MAX_SHOWN_LENGTH))
  if (likely !== undefined) return phrase('config.no_such_key_likely', { key, likely })
  return known.length > 0 ? phrase('config.no_such_key_of', { key, known }) : phrase('config.no_such_key', { key })
}

function unknownValue(input: unknown, values: readonly unknown[]): Phrase {
  const texts = values.filter(value => typeof value === 'string')
  const likely = typeof input === 'string' ? closestName(input, texts) : undefined
  const known = values.map(String)
  const [value = ''] = known
  if (values.length === 1)
    return likely === undefined
      ? phrase('config.expected_value', { value })
      : phrase('config.expected_value_likely', { value, likely })
  return likely === undefined
    ? phrase('config.expected_one_of', { known })
    : phrase('config.expected_one_of_likely', { known, likely })
}

function keysOf(schema: RawIssue['inst']): string[] {
  const { shape } = (schema?._zod.def ?? {}) as { shape?: object }
  return Object.keys(shape ?? {})
}

function given(input: unknown): Phrase {
  if (input === undefined) return phrase('config.given_nothing')
  if (input === null) return phrase('config.given_null')
  const type = Array.isArray(input) ? 'array' : typeof input
  return phrase('config.given_type', { type: TYPES[type] ?? quoted(`a ${type}`) })
}

function atLeast(limit: string, origin: string): Phrase {
  if (origin !== 'string') return phrase('config.at_least', { limit })
  return limit === '1' ? phrase('config.not_empty') : phrase('config.at_least_characters', { limit })
}

function atMost(limit: string, origin: string): Phrase {
  return origin === 'string' ? phrase('config.at_most_characters', { limit }) : phrase('config.at_most', { limit })
}
