// The path of a request: which paths are refused as unreadable. The rules judge all others.

import { ownCopy } from '../util/own-copy.ts'
import { createRecent, type RecentCache } from '../util/recent.ts'
import { decodedPath, type Steps, textsOf } from './ambiguous-paths.ts'
import { fold } from './fold.ts'

/** Nothing to check: no escape, no empty or dot segment, no parameter, no session identifier. */
const PLAIN = /^(?:\/(?![.+(])[\w\-.~!$&'()*+,=:@]+)*\/?$/

/** Why a path is refused, whatever the rules say. */
export type PathProblem =
  | 'no_single_slash_at_start'
  | 'forbidden_character'
  | 'broken_encoding'
  | 'dot_segment'
  | 'too_many_interpretations'

/** `undefined` for a path that the rules can judge. `steps` counts the work. */
export function pathProblem(path: string, steps: Steps = { count: 0 }): PathProblem | undefined {
  if (PLAIN.test(path) && path !== '') return undefined
  if (!/^\/(?!\/)/.test(path)) return 'no_single_slash_at_start'
  // Raw or encoded; a browser encodes all of these if they are raw.
  if (/[^\x21-\x7e]|[\\"<>^`{}#]|%(?:[01][\da-f]|7f|c2%[89][\da-f])/i.test(path)) return 'forbidden_character'
  const decoded = tryDecode(path)
  if (decoded === undefined) return 'broken_encoding'
  const texts = textsOf(decoded, steps)
  if (!texts) return 'too_many_interpretations'
  const { spellings, withoutSession } = texts
  if (segmentsIn(spellings) + segmentsIn(withoutSession) > MAX_INTERPRETED_SEGMENTS) return 'too_many_interpretations'
  return textProblem(spellings) ?? textProblem(withoutSession)
}

/** In all texts of a path together, because the rules judge each of them. */
const MAX_INTERPRETED_SEGMENTS = 400

function segmentsIn(texts: readonly string[]): number {
  let count = 0
  for (const text of texts) for (let at = text.indexOf('/'); at >= 0; at = text.indexOf('/', at + 1)) count++
  return count
}

function textProblem(texts: readonly string[]): PathProblem | undefined {
  for (const text of texts) {
    if (text.split('/').length > MAX_PATH_SEGMENTS + 1) return 'too_many_interpretations'
    if (hasDotSegment(text) || hasDotSegment(fold(text))) return 'dot_segment'
  }
  return undefined
}

function tryDecode(path: string): string | undefined {
  try {
    return decodedPath(path)
  } catch {
    return undefined
  }
}

/**
 * In any encoding, and before a parameter or anything else that servers cut off. Three or more dots are a name. One dot with signs
 * after it is at most an empty segment, and the rules judge it as one.
 */
const DOT_SEGMENT = /^\s*(?:\.\.(?![.\p{L}\p{N}_-])|\.(?:[\s;]|$))/u

function hasDotSegment(text: string): boolean {
  return text.includes('.') && text.split(/[/\\\0]/).some(segment => DOT_SEGMENT.test(segment))
}

// The target of a request: a path and a query.

export interface Target {
  /** As received. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly search: string
}

/** More than any page needs. Every interpretation of a path is judged, and a long path has many. */
const [MAX_PATH_LENGTH, MAX_PATH_SEGMENTS] = [4096, 100]

/** Whether the path of a target is too long to be judged. */
export function isTooLong(target: string): boolean {
  const queryStart = target.indexOf('?')
  const length = queryStart < 0 ? target.length : queryStart
  if (length > MAX_PATH_LENGTH) return true
  let segments = 0
  for (let slash = target.indexOf('/'); slash >= 0 && slash < length; slash = target.indexOf('/', slash + 1)) segments++
  return segments > MAX_PATH_SEGMENTS
}

export interface ReadTarget {
  /** `undefined` if the path is refused or too long. */
  (text: string): Target | undefined
  /** Why the path of a target was refused, without judging it again. */
  problemOf?(path: string): PathProblem | undefined
}

export const readTarget = createParser(readPath)

const MAX_CACHED_PATHS = 2000
/** Longer paths are not addresses of pages. A client that repeats one costs little, because a few of them are cached, too. */
const MAX_CACHED_PATH_LENGTH = 256
const MAX_CACHED_LONG_PATHS = 64

/** A cache keyed by path. Most requests are for a recent path. */
export function createPathCache<Value>(): RecentCache<Value> {
  const pages = createRecent<Value>(MAX_CACHED_PATHS)
  const longPaths = createRecent<Value>(MAX_CACHED_LONG_PATHS)
  return {
    get: path => (path.length > MAX_CACHED_PATH_LENGTH ? longPaths : pages).get(path),
    set: (path, value) => (path.length > MAX_CACHED_PATH_LENGTH ? longPaths : pages).set(path, value),
  }
}

/** Caches the targets of recent paths: the same string finds its rule faster. Without queries, because those can contain secrets. */
export function createReadTarget(): ReadTarget {
  const targets = createPathCache<Target>()
  const refused = createRecent<PathProblem>(MAX_CACHED_LONG_PATHS)

  function problemOf(path: string): PathProblem | undefined {
    const known = refused.get(path)
    if (known) return known
    const problem = pathProblem(path)
    if (problem) refused.set(ownCopy(path), problem)
    return problem
  }

  const parse = createParser(text => {
    const known = targets.get(text)
    if (known) return known
    if (isTooLong(text) || problemOf(text)) return undefined
    const target = { path: ownCopy(text), search: '' }
    targets.set(target.path, target)
    return target
  })
  return Object.assign(parse, { problemOf })
}

function createParser(parsePath: (text: string) => Target | undefined): (text: string) => Target | undefined {
  return text => {
    const queryStart = text.indexOf('?')
    if (queryStart < 0) return parsePath(text)
    const target = parsePath(text.slice(0, queryStart))
    return target && { path: target.path, search: text.slice(queryStart) }
  }
}

function readPath(text: string): Target | undefined {
  return isTooLong(text) || pathProblem(text) ? undefined : { path: text, search: '' }
}
