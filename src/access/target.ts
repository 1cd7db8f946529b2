// What a request asks for: a path in its canonical form, and a query.
import { canonicalPath } from './canonical-path.ts'
import { createRecent } from './recent.ts'

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
const remembered = createRecent<Target>(1000)
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
