// The path of a request: which paths are refused as unreadable. The rules judge all others.

import { ownCopy } from '../util/own-copy.ts'
import { createRecent } from '../util/recent.ts'
import { pathsWithoutSession } from './interpretations.ts'
import { allSpellings, decodedPath, fold, type Steps, spellingsOf } from './spellings.ts'

/** Nothing to check: no escape, no empty or dot segment, no parameter, no session identifier. */
const PLAIN = /^(?:\/(?![.+(])[\w\-.~!$&'()*+,=:@]+)*\/?$/

/** Why a path is refused, whatever the rules say. */
export type PathProblem =
  | 'no_single_slash_at_start'
  | 'forbidden_character'
  | 'broken_encoding'
  | 'dot_segment'
  | 'too_many_interpretations'

/** `undefined` for a path that the rules judge. `steps` counts the work. */
export function pathProblem(path: string, steps: Steps = { count: 0 }): PathProblem | undefined {
  if (PLAIN.test(path) && path !== '') return undefined
  if (!/^\/(?!\/)/.test(path)) return 'no_single_slash_at_start'
  // Raw or encoded; a browser encodes all of the raw ones.
  if (/[^\x21-\x7e]|[\\"<>^`{}#]|%(?:[01][\da-f]|7f|c2%[89][\da-f])/i.test(path)) return 'forbidden_character'
  const decoded = tryDecode(path)
  if (decoded === undefined) return 'broken_encoding'
  const spellings = spellingsOf(decoded, steps)
  if (!spellings) return 'too_many_interpretations'
  const others = allSpellings(pathsWithoutSession(spellings), steps)
  if (!others || segmentsIn(spellings) + segmentsIn(others) > MOST_JUDGED_SEGMENTS) return 'too_many_interpretations'
  return textProblem(spellings) ?? textProblem(others)
}

/** Of all interpretations: the rules judge each of them. */
const MOST_JUDGED_SEGMENTS = 400

function segmentsIn(texts: readonly string[]): number {
  let count = 0
  for (const text of texts) for (let at = text.indexOf('/'); at >= 0; at = text.indexOf('/', at + 1)) count++
  return count
}

function textProblem(texts: readonly string[]): PathProblem | undefined {
  for (const text of texts) {
    if (text.split('/').length > MOST_SEGMENTS + 1) return 'too_many_interpretations'
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
 * In any encoding, and before a parameter or whatever else servers cut off. Three dots and more are a name; one dot with
 * signs after it is at most an empty segment, and the rules judge it as that.
 */
const DOT_SEGMENT = /^\s*(?:\.\.(?![.\p{L}\p{N}_-])|\.(?:[\s;]|$))/u

function hasDotSegment(text: string): boolean {
  return text.includes('.') && text.split(/[/\\\0]/).some(segment => DOT_SEGMENT.test(segment))
}

// What a request asks for: a path and a query.

export interface Target {
  /** As it came. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly search: string
}

/** More than any page has. Every interpretation of a path is judged, and a long path has many. */
const [LONGEST_PATH, MOST_SEGMENTS] = [4096, 100]

/** Whether the path of a target is too long to be read. */
export function isTooLong(target: string): boolean {
  const queryStart = target.indexOf('?')
  const length = queryStart < 0 ? target.length : queryStart
  if (length > LONGEST_PATH) return true
  let segments = 0
  for (let slash = target.indexOf('/'); slash >= 0 && slash < length; slash = target.indexOf('/', slash + 1)) segments++
  return segments > MOST_SEGMENTS
}

export interface ReadTarget {
  /** `undefined` if the path is refused or too long. */
  (text: string): Target | undefined
  /** Why the path of a target was refused, without judging it again. */
  problemOf?(path: string): PathProblem | undefined
}

export const readTarget = createParser(readPath)

const MOST_REMEMBERED = 2000
/** Longer paths are not the addresses of pages. A client that repeats one costs little: a few of them are remembered, too. */
const LONGEST_PAGE = 256
const MOST_LONG = 64

/** Most requests ask for a recent path, and the same string finds its rule faster. Without queries: those can contain secrets. */
export function createReadTarget(): ReadTarget {
  const pages = createRecent<Target>(MOST_REMEMBERED)
  const longPaths = createRecent<Target>(MOST_LONG)
  const refused = createRecent<PathProblem>(MOST_LONG)

  function problemOf(path: string): PathProblem | undefined {
    const known = refused.get(path)
    if (known) return known
    const problem = pathProblem(path)
    if (problem) refused.set(ownCopy(path), problem)
    return problem
  }

  const parse = createParser(text => {
    const remembered = text.length > LONGEST_PAGE ? longPaths : pages
    const known = remembered.get(text)
    if (known) return known
    if (isTooLong(text) || problemOf(text)) return undefined
    const kept = { path: ownCopy(text), search: '' }
    remembered.set(kept.path, kept)
    return kept
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
