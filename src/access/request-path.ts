// One canonical form of a path: it decides the rule and is what is forwarded. A path that two parsers could read
// differently has none.

import { LRUCache } from 'lru-cache'
import { fold, otherSpellings } from './interpretations.ts'

/** Nothing to think about: no escape, no empty or dot segment, no parameter. */
const PLAIN = /^(?:\/(?![.+])[\w\-.~!$&'()*+,=:@]+)*\/?$/

/** `undefined` if the path is ambiguous or broken: it must be refused, never guessed. */
export function canonicalPath(path: string): string | undefined {
  if (PLAIN.test(path) && path !== '') return path
  if (!path.startsWith('/') || /[^\x21-\x7e]|[\\;"<>^`{}#]/.test(path)) return undefined
  // Browsers leave this one as it is.
  const canonical = decodeUnreserved(path.replaceAll('|', '%7C'))
  if (canonical === undefined || isAmbiguous(canonical)) return undefined
  return canonical
}

/** As people write it in rules and prefixes: to an application `/%40me` is `/@me`, so it has to be to them. */
export function decodedPath(canonical: string): string {
  return canonical.includes('%') ? decodeURIComponent(canonical) : canonical
}

/** RFC 3986, 6.2.2: an escaped letter is the letter; what stays escaped is written in capitals. */
function decodeUnreserved(path: string): string | undefined {
  try {
    decodeURIComponent(path)
  } catch {
    return undefined
  }
  return path.replace(/%([0-9a-f]{2})/gi, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\w\-.~]/.test(character) ? character : escaped.toUpperCase()
  })
}

function isAmbiguous(path: string): boolean {
  // Slash, backslash, semicolon, control characters; and a percent sign in front of two more digits, which would make
  // whoever decodes twice see something else.
  if (/%(?:2F|5C|3B|7F|[01][0-9A-F])|%25[0-9A-Fa-f]{2}/.test(path)) return true
  if (path.includes('//')) return true
  const readable = decodedPath(path)
  const others = otherSpellings(readable)
  return [readable, ...(others.length > 0 ? others : [fold(readable)])].some(hasDotSegment)
}

/** Also one that is left when spaces and dots are trimmed, as Windows does, or when the segment is cut at a sign. */
function hasDotSegment(path: string): boolean {
  return path.split(/[/\\]/).some(segment => /^\s*\.(?:[^\p{L}\p{N}_-]|$)/u.test(segment))
}

// What a request asks for: a path in its canonical form, and a query.

export interface Target {
  /** In its canonical form. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly search: string
}

/**
 * Most requests ask for what was asked for a moment ago, and the very same text finds its rule faster, too. Without queries:
 * those can have secrets in them.
 */
const remembered = new LRUCache<string, Target>({ max: 2000 })
/** Nobody can fill the memory with what is no address of any page. */
const LONGEST_REMEMBERED = 256

/** More than any page has. Every way in which an application could read a path is looked at, and a long one has many. */
const [LONGEST_PATH, MOST_SEGMENTS] = [4096, 100]

/** Whether the path of a target is so long that nobody tries to read it. */
export function isTooLong(target: string): boolean {
  const queryStart = target.indexOf('?')
  const length = queryStart < 0 ? target.length : queryStart
  if (length > LONGEST_PATH) return true
  let segments = 0
  for (let slash = target.indexOf('/'); slash >= 0 && slash < length; slash = target.indexOf('/', slash + 1)) segments++
  return segments > MOST_SEGMENTS
}

/** `undefined` if the path is one that two parsers could read differently, or too long. */
export function readTarget(text: string): Target | undefined {
  const queryStart = text.indexOf('?')
  if (queryStart < 0) return readPath(text)
  const target = readPath(text.slice(0, queryStart))
  return target && { path: target.path, search: text.slice(queryStart) }
}

function readPath(text: string): Target | undefined {
  const known = remembered.get(text)
  if (known) return known
  if (isTooLong(text)) return undefined
  const path = canonicalPath(text)
  if (path === undefined) return undefined
  const target = { path, search: '' }
  if (text.length <= LONGEST_REMEMBERED) remembered.set(text, target)
  return target
}
