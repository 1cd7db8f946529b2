// Checks a value by a schema, and says in one sentence each what is wrong and what was probably meant.

import type { z } from 'zod'
import { likelyMeantOf } from './suggestions.ts'

export interface ShapeProblem {
  /** Empty for the whole value. */
  readonly path: string
  /** With its full stop. */
  readonly message: string
}

type Issue = z.core.$ZodIssue
type RawIssue = z.core.$ZodRawIssue
/** The names that the object has, by the list of those that it has not. */
type KnownKeys = Map<readonly string[], readonly string[]>

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}
const LONGEST_SHOWN = 60

export function checkShape<T>(
  schema: z.ZodType<T>,
  value: unknown,
): { readonly data: T } | { readonly problems: readonly ShapeProblem[] } {
  // zod shows an object's schema only while it words the issue.
  const knownKeys: KnownKeys = new Map()
  const error = (issue: RawIssue) => {
    if (issue.code === 'unrecognized_keys') knownKeys.set(issue.keys, keysOf(issue.inst))
    return sentenceFor(issue)
  }
  const result = schema.safeParse(value, { error })
  if (result.success) return { data: result.data }
  const problems = problemsIn(result.error.issues, knownKeys)
  return { problems: problems.map(({ path, message }) => ({ path: path.join('.'), message: withFullStop(message) })) }
}

interface PathProblem {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/** For a choice between shapes, the problems of the one that was meant. */
function problemsIn(issues: readonly Issue[], knownKeys: KnownKeys): PathProblem[] {
  return issues.flatMap(issue => {
    const { path } = issue
    if (issue.code === 'invalid_union') return problemsOfUnion(issue, knownKeys)
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    return issue.keys.map(key => ({ path, message: unknownKey(key, knownKeys.get(issue.keys) ?? []) }))
  })
}

function problemsOfUnion(issue: Extract<Issue, { code: 'invalid_union' }>, knownKeys: KnownKeys): PathProblem[] {
  const { path, errors } = issue
  // A shape of another type was not meant.
  const isMeant = (issues: readonly Issue[]) =>
    !issues.some(issue => issue.code === 'invalid_type' && issue.path.length === 0)
  const meant = errors.find(isMeant)
  if (meant) return problemsIn(meant, knownKeys).map(problem => ({ ...problem, path: [...path, ...problem.path] }))
  const expected = errors.flatMap(issues =>
    issues.flatMap(issue => (issue.code === 'invalid_type' ? [issue.expected] : [])),
  )
  const types = [...new Set(expected.map(type => TYPES[type] ?? type))]
  return [{ path, message: `expected ${types.join(' or ') || 'another value'}` }]
}

/** For issues whose schema has no message. */
function sentenceFor(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? issue.expected}, ${given(issue.input)}`
    case 'invalid_value':
      return unknownValue(issue.input, issue.values)
    case 'too_small':
      return issue.origin === 'array' ? 'expected at least one' : `expected ${amount(issue.minimum, 'at least', issue)}`
    case 'too_big':
      return `expected ${amount(issue.maximum, 'at most', issue)}`
    default:
      return 'this value is not allowed here'
  }
}

function unknownKey(key: string, known: readonly string[]): string {
  const likely = likelyMeantOf(key, known)
  const shown = JSON.stringify(key.slice(0, LONGEST_SHOWN))
  if (likely !== undefined) return `there is no ${shown}; did you mean ${likely}?`
  return known.length > 0 ? `there is no ${shown}; expected one of ${known.join(', ')}` : `there is no ${shown}`
}

function unknownValue(input: unknown, known: readonly unknown[]): string {
  const texts = known.filter(value => typeof value === 'string')
  const likely = typeof input === 'string' ? likelyMeantOf(input, texts) : undefined
  const expected = known.length === 1 ? known[0] : `one of ${known.join(', ')}`
  return likely === undefined ? `expected ${expected}` : `expected ${expected}; did you mean ${likely}?`
}

function keysOf(schema: RawIssue['inst']): string[] {
  const { shape } = (schema?._zod.def ?? {}) as { shape?: object }
  return Object.keys(shape ?? {})
}

function given(input: unknown): string {
  if (input === undefined) return 'but it is missing'
  if (input === null) return 'not null'
  return `not ${Array.isArray(input) ? 'a list' : (TYPES[typeof input] ?? `a ${typeof input}`)}`
}

function amount(limit: number | bigint, bound: string, { origin }: { origin: string }): string {
  if (origin === 'string') return limit === 1 ? 'text that is not empty' : `${bound} ${limit} characters`
  return `${bound} ${limit}`
}

function withFullStop(message: string): string {
  return /[.?]$/.test(message) ? message : `${message}.`
}
