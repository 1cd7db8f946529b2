// What is wrong with a configuration, in sentences of ours: what is expected, and the name that was probably meant. Values are
// not quoted: they can be secrets.
import type { z } from 'zod'
import { likelyMeantOf } from '../nearest.ts'

type Issue = z.core.$ZodIssue
type RawIssue = z.core.$ZodRawIssue

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

/** For whatever a schema does not say itself. */
export function sentenceOf(issue: RawIssue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map(key => unknownKey(key, keysOf(issue.inst))).join(NEXT_PROBLEM)
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? issue.expected}, ${given(issue.input)}`
    case 'invalid_value':
      return unknownValue(issue.input, issue.values)
    case 'too_small':
      return issue.origin === 'array' ? 'expected at least one' : `expected ${amount(issue.minimum, 'at least', issue)}`
    case 'too_big':
      return `expected ${amount(issue.maximum, 'at most', issue)}`
    default:
      return 'this cannot be used here'
  }
}

/** Each problem with its path. Of a choice between shapes, the problems of the one that was meant. */
export function problemsIn(
  issues: readonly Issue[],
): { readonly path: readonly PropertyKey[]; readonly message: string }[] {
  return issues.flatMap(issue => {
    if (issue.code === 'invalid_union') return problemsOfUnion(issue)
    // One of several unknown names is one problem.
    return issue.message.split(NEXT_PROBLEM).map(message => ({ path: issue.path, message }))
  })
}

/** Between problems that a schema tells as one. */
const NEXT_PROBLEM = '\n'

function problemsOfUnion({ path, errors }: Extract<Issue, { code: 'invalid_union' }>) {
  // A shape whose very type is another one was not meant.
  const isMeant = (issues: readonly Issue[]) =>
    !issues.some(issue => issue.code === 'invalid_type' && issue.path.length === 0)
  const meant = errors.find(isMeant)
  if (meant) return problemsIn(meant).map(problem => ({ ...problem, path: [...path, ...problem.path] }))
  const expected = errors.flatMap(issues =>
    issues.flatMap(issue => (issue.code === 'invalid_type' ? [issue.expected] : [])),
  )
  const types = [...new Set(expected.map(type => TYPES[type] ?? type))]
  return [{ path, message: `expected ${types.join(' or ') || 'another value'}` }]
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

/** Those of an object's schema. */
function keysOf(schema: RawIssue['inst']): string[] {
  const { shape } = (schema?._zod.def ?? {}) as { shape?: object }
  return Object.keys(shape ?? {})
}

function given(input: unknown): string {
  if (input === undefined) return 'and nothing is there'
  if (input === null) return 'not null'
  return `not ${Array.isArray(input) ? 'a list' : (TYPES[typeof input] ?? `a ${typeof input}`)}`
}

function amount(limit: number | bigint, bound: string, { origin }: { origin: string }): string {
  if (origin === 'string') return limit === 1 ? 'text that is not empty' : `${bound} ${limit} characters`
  return origin === 'array' ? `${bound} ${limit}` : `${bound} ${limit}`
}
