// Every interpretation that an application could give a path: it may decode it twice, take an encoded slash for a separator,
// drop parameters and empty segments, take a suffix for a format, trim signs and spaces, cut at a question mark, fold letters,
// or serve a folder by its index page. Each interpretation leads to rules of its own.

import type { Rule } from '../config/config-file.ts'
import { below, decidingRules, type Naming, type RuleNode } from './rule-tree.ts'
import { fold, shownPath } from './spellings.ts'

export interface Interpretation {
  path(): string
  readonly rules: readonly Rule[]
  /** The node that the whole path names: what is below the path is below this node. Absent for a file, and where none follows. */
  readonly node?: RuleNode
}

const NONE: readonly RuleNode[] = []
const NO_PATHS: readonly string[] = []
/** The usual segment. */
const PLAIN = /^[a-z\d_-]+$/
/** Names are letters, digits, dashes and underscores. Whatever else follows a name may be no part of it. */
const SIGN = /[^\p{L}\p{N}\p{M}_-]/gu
/** The path ends there for servers that decode before they parse; a parameter is the rest of the path for some. */
const CUT = /[;?#]/
/** What follows a script in a path is its argument, or the page that it gives. */
const SCRIPT = /\.(?:php\d?|phtml|aspx?|ashx|asmx|jspx?|cgi|fcgi|pl|py|rb|cfm|do|action)(?![\w-])/
/** What servers look for, or give, when a path has no extension. */
const PAGE =
  /\.(?:x?html?|shtml|json|xml|php\d?|phtml|aspx?|ashx|asmx|jspx?|jsf|faces|cgi|fcgi|pl|py|rb|cfm|do|action)$/
/** Any file: lighttpd, and Apache with AcceptPathInfo, serve it whatever follows. `v1.0` is none. */
const FILE = /\.(?=\d*[a-z])[a-z\d]{1,7}(?![\w-])/
/** What a folder is served by, and may be asked for by. A bare `home` is a page of its own to most applications. */
const INDEX_PAGE = /^(?:(?:index|default)(?![\w-])|(?:home|welcome|iisstart)\.)/
/** Nothing is left when spaces and signs are trimmed, or when it is cut. */
const NAMELESS = /^\s*(?:$|[%;:?#]|[^\p{L}\p{N}_-](?![\p{L}\p{N}_-]))/u
const INVISIBLE_THEN_SIGN = /^[\s+\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]+[^\p{L}\p{N}_-]/u
/** Windows has a second name like this for every name that is not eight letters and three (`DATA~1.JSO` for `data.json`). */
const SHORT_NAME = /^([^.~]{1,6})~\d/
const NEEDS_NO_SHORT_NAME = /^[^. ]{1,8}(?:\.[^. ]{1,3})?$/
/** Where many names begin alike, four digits of a hash follow their first two letters. */
const HASHED_NAME = /^(.{1,2})[\da-f]{4}$/
/**
 * ASP.NET takes `/(S(…))`, and its like with other letters, out of a path at any place, once or more: what is left on
 * both sides may become one segment.
 */
const SESSION_SEGMENTS = [/\/\([^/]*\)(?=\/|$)/g, /\/\([^/]*\)/g, /\/\((?:(?!\/\().){0,256}?\)(?=\/|$)/gs]

export const LENIENT_NAMING: Naming = {
  /** A number is the same number with zeros in front. */
  keyOf(segment) {
    const folded = fold(segment)
    return /^0\d*$/.test(folded) ? folded.replace(/^0+(?=\d)/, '') : folded
  },
  aliasOf: key => (PAGE.test(key) ? key.replace(PAGE, '') : undefined),
  isIndexPage: key => INDEX_PAGE.test(key),
}

/** Nothing to read differently: with plain rules, there is one reading. */
export function isPlain(path: string): boolean {
  return path === '/' || (/^(?:\/[a-z\d_-]+)+$/.test(path) && !/\/(?:index|default)(?:\/|$)/.test(path))
}

/** A plain path meets such a rule only where it is spelled like it. */
export function isPlainRule({ path }: Rule): boolean {
  return path.split('/').every(segment => {
    const key = LENIENT_NAMING.keyOf(segment)
    const isOneOfMany =
      LENIENT_NAMING.aliasOf(key) !== undefined || LENIENT_NAMING.isIndexPage(key) || /^\d+$/.test(key)
    return !isOneOfMany && (key === segment || !isPlain(`/${key}`))
  })
}

/** `spellings` are those of what follows the path of `start`; each begins with the slash that ends that path. */
export function* interpretationsOf(
  start: RuleNode,
  spellings: readonly string[],
  method: string,
): Generator<Interpretation> {
  for (const spelling of spellings) yield* walk(start, spelling.split('/').slice(1), method)
}

/** What an application sees that takes session identifiers out of paths; nothing for any other path. */
export function pathsWithoutSession(spellings: readonly string[]): readonly string[] {
  if (!spellings.some(spelling => spelling.includes('/('))) return NO_PATHS
  const taken = spellings.flatMap(spelling =>
    // With the slash before it, or without.
    SESSION_SEGMENTS.flatMap(part => [spelling.replace(part, ''), spelling.replace(part, '/')]),
  )
  const others = new Set(taken.map(left => (left.startsWith('/') ? left : `/${left}`)))
  return [...others].filter(left => !spellings.includes(left))
}

function* walk(start: RuleNode, segments: readonly string[], method: string): Generator<Interpretation> {
  let nodes: ReadonlySet<RuleNode> = new Set([start])
  for (const [i, segment] of segments.entries()) {
    const next = new Set<RuleNode>()
    const meaning = meaningOf(segment)
    const isLast = i === segments.length - 1
    for (const node of nodes) {
      const children = childrenFor(node, meaning)
      const isNamed = children.some(({ spellings }) => spellings.has(segment))
      if (!isNamed) yield goesOn(node, segments, i, method)
      // What follows a page is an argument of it, also where it is asked for without its suffix (`/page/x` for `/page.php`).
      for (const child of children) if (meaning.mayEnd || child.hasAlias) yield* endsAt(child, method, meaning.isCut)
      if (meaning.mayEndBefore) yield* endsAt(node, method, meaning.isCut)
      if (meaning.isNameless || (meaning.isScript && !isLast)) next.add(node)
      for (const child of children) next.add(child)
    }
    if (next.size === 0) return
    nodes = next
  }
  for (const node of nodes) yield* endsAt(node, method, true)
}

interface Meaning {
  readonly key: string
  readonly isScript?: boolean
  readonly isNameless?: boolean
  readonly isCut?: boolean
  /** The path may end with this segment, whatever follows. */
  readonly mayEnd?: boolean
  /** Or without it. */
  readonly mayEndBefore?: boolean
}

function meaningOf(segment: string): Meaning {
  const key = LENIENT_NAMING.keyOf(segment)
  if (PLAIN.test(key)) return { key, mayEndBefore: INDEX_PAGE.test(key) }
  const isScript = SCRIPT.test(key)
  const isCut = CUT.test(key)
  const isNameless = NAMELESS.test(key) || INVISIBLE_THEN_SIGN.test(segment)
  return {
    key,
    isScript,
    isNameless,
    isCut,
    // Some servers take what follows a file for an argument of it, as all do with scripts.
    mayEnd: isCut || isScript || FILE.test(key),
    mayEndBefore: INDEX_PAGE.test(key) || (isNameless && isCut),
  }
}

/** The children that a segment could mean. */
function childrenFor({ children, aliases, longestKey }: RuleNode, { key }: Meaning): readonly RuleNode[] {
  if (children.size === 0) return NONE
  const name = key.trimStart()
  const found = new Set(aliases.get(withoutTrailingSigns(name)))
  const add = (child: RuleNode | undefined) => child && found.add(child)
  add(children.get(key))
  if (PLAIN.test(key)) return [...found]
  add(children.get(name))
  for (const { index } of name.matchAll(SIGN)) {
    if (index > longestKey) break
    add(children.get(LENIENT_NAMING.keyOf(name.slice(0, index))))
  }
  const short = SHORT_NAME.exec(name)?.[1]
  if (short !== undefined) for (const [other, child] of children) if (isShortFor(short, other)) add(child)
  return [...found]
}

/** Whether the part before the tilde of a short name can be the beginning of this name. */
function isShortFor(short: string, name: string): boolean {
  if (NEEDS_NO_SHORT_NAME.test(name)) return false
  const letters = name.replace(/[. ]/g, '').replace(/[+,;=[\]]/g, '_')
  const [, hashed = ''] = HASHED_NAME.exec(short) ?? []
  return letters.startsWith(short) || (hashed !== '' && letters.startsWith(hashed))
}

/** By hand: a pattern for it would take its time with a long run of signs that is not the end. */
function withoutTrailingSigns(name: string): string {
  let end = name.length
  while (end > 0 && ' .~'.includes(name.charAt(end - 1))) end--
  return name.slice(0, end)
}

/** Of a path that an exact rule names: its author knows what is served there. */
export function interpretationAt(node: RuleNode, method: string): Interpretation {
  return { path: () => node.path, rules: decidingRules(node, method, true), node }
}

/** `isWhole` if the path names the node itself, and not a file of it. */
function* endsAt(node: RuleNode, method: string, isWhole = false): Generator<Interpretation> {
  const { path, rules } = interpretationAt(node, method)
  yield isWhole ? { path, rules, node } : { path, rules }
  for (const page of node.indexPages) yield* endsAt(page, method)
}

function goesOn(node: RuleNode, segments: readonly string[], i: number, method: string): Interpretation {
  return { path: () => shownPath(below(node, segments.slice(i).join('/'))), rules: decidingRules(node, method, false) }
}
