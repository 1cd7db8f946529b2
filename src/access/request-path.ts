// The path of a request: which paths are refused as unreadable. The rules judge all others.

import { ownCopy } from '../util/own-copy.ts'
import { createRecent } from '../util/recent.ts'
import { pathsWithoutSession } from './interpretations.ts'
import { allSpellings, decodedPath, fold, spellingsOf } from './spellings.ts'

/** Nothing to check: no escape, no empty or dot segment, no parameter, no session identifier. */
const PLAIN = /^(?:\/(?![.+(])[\w\-.~!$&'()*+,=:@]+)*\/?$/

/** Why a path is refused, whatever the rules say. */
export type PathProblem =
  | 'no_single_slash_at_start'
  | 'forbidden_character'
  | 'broken_encoding'
  | 'dot_segment'
  | 'too_many_interpretations'

/** `undefined` for a path that the rules judge. */
export function pathProblem(path: string): PathProblem | undefined {
  if (PLAIN.test(path) && path !== '') return undefined
  if (!/^\/(?!\/)/.test(path)) return 'no_single_slash_at_start'
  // Raw or encoded; a browser encodes all of the raw ones.
  if (/[^\x21-\x7e]|[\\"<>^`{}#]|%(?:[01][\da-f]|7f|c2%[89][\da-f])/i.test(path)) return 'forbidden_character'
  const decoded = tryDecode(path)
  if (decoded === undefined) return 'broken_encoding'
  const spellings = spellingsOf(decoded)
  if (!spellings) return 'too_many_interpretations'
  const others = allSpellings(pathsWithoutSession(spellings))
  return others ? (textProblem(spellings) ?? textProblem(others)) : 'too_many_interpretations'
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

/** `undefined` if the path is refused or too long. */
export type ReadTarget = (text: string) => Target | undefined

export const readTarget = createParser(readPath)

const MOST_REMEMBERED = 2000
/** A bound for the memory: longer paths are no addresses of pages. */
const LONGEST_REMEMBERED = 256

/** Most requests ask for a recent path, and the same string finds its rule faster. Without queries: those can contain secrets. */
export function createReadTarget(): ReadTarget {
  const remembered = createRecent<Target>(MOST_REMEMBERED)
  return createParser(text => {
    const known = remembered.get(text)
    if (known) return known
    const target = readPath(text)
    if (!target || text.length > LONGEST_REMEMBERED) return target
    const kept = { path: ownCopy(text), search: '' }
    remembered.set(kept.path, kept)
    return kept
  })
}

function createParser(parsePath: ReadTarget): ReadTarget {
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
