// One request path can name different pages in different applications, because they decode and clean paths in different ways. The
// gateway does not know how the application behind it does this, so it finds all interpretations, and the rule of each has to admit
// the caller. Rules: `/files` is for everyone, `/files/admin` for developers. A common user asks for `/files/%2541dmin;v=1`:
//
//   decodedPath        /files/%41dmin;v=1          the literal path: rule /files, which admits the user
//   spellingsOf        /%41dmin;v=1                the texts that can follow /files: the part that a rule names is not ambiguous
//                      /Admin;v=1                  …to an application that decodes twice
//   interpretationsOf  /files/%41dmin;v=1          rule /files
//                      /files/Admin;v=1            rule /files
//                      /files/admin                rule /files/admin, for an application that drops parameters and ignores case
//   rules.ts           /files/admin does not admit the user: 403
//
// The work is bounded. A path has at most 32 spellings and 8192 steps of work (below), 4096 characters, and 400 segments in all
// of its spellings together (request-path.ts). A path beyond any of these limits is refused, and never judged by only some of its
// interpretations.

import type { Rule } from '../config/file.ts'
import { fold, foldCase, isAscii } from './fold.ts'
import { below, decidingRules, type RuleNode, type SegmentNames } from './rule-tree.ts'

// Decoding once.

/** An encoded slash that is part of a name. No path contains this character: control characters are refused. */
const SLASH_IN_NAME = '\0'
/** Begins an escape that is not needed: some servers compare paths without decoding, and `%61` is not `a` to them. */
const KEPT_ESCAPE = '\x01'
/** The escapes of letters, digits, `-`, `.`, `_` and `~`. */
const UNNEEDED_ESCAPE = /%(2[de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi
const ESCAPED_SLASH = /%2f/gi

/**
 * Decodes the path once. Servers disagree about escaped slashes and about escapes that are not needed: both stay marked in the
 * decoded text. Throws if the encoding is broken.
 */
export function decodedPath(path: string): string {
  if (!path.includes('%')) return path
  // Two passes without a callback: 0.1 ms for 4 KB of escapes, where a callback for each takes 2 ms.
  const marked = path.replace(ESCAPED_SLASH, SLASH_IN_NAME).replace(UNNEEDED_ESCAPE, `${KEPT_ESCAPE}$1`)
  return decodeURIComponent(marked)
}

/** The text as most servers read it: `%61` is `a`. */
export function withoutKeptEscapes(decoded: string): string {
  if (!decoded.includes(KEPT_ESCAPE)) return decoded
  // decodeURIComponent is the only decoder without a call for each escape.
  return decodeURIComponent(decoded.replaceAll('%', '%25').replaceAll(KEPT_ESCAPE, '%'))
}

/** The text by which an upstream is chosen. */
export function decodedOnce(path: string): string {
  return path.includes('%') ? withoutKeptEscapes(decodedPath(path)) : path
}

/** A decoded path for people. */
export function shownPath(decoded: string): string {
  return decoded.replaceAll(SLASH_IN_NAME, '%2F').replaceAll(KEPT_ESCAPE, '%')
}

// Spellings: the texts that applications make of a path before they look at its segments. They decode it again, take an encoded
// slash for a separator or for a part of a name, take backslashes for slashes, and convert characters to similar ones.

/** More than a path has that is encoded twice. */
const MAX_SPELLINGS = 32
/** The work for one path, in decoded or normalised characters: about a millisecond. It is checked before the work is done. */
const MAX_STEPS = 8192

/** The work so far, shared by all texts of one path. */
export interface Steps {
  count: number
}

/** Every text that applications make of one path. */
export interface PathTexts {
  /** Texts of the whole path, which comes first. */
  readonly spellings: readonly string[]
  /** Texts of the path without its session identifiers; none for nearly all paths. */
  readonly withoutSession: readonly string[]
}

/** `undefined` if there are too many texts, if they take too much work, or if one of them has a control character. */
export function textsOf(decoded: string, steps: Steps = { count: 0 }): PathTexts | undefined {
  const spellings = spellingsOf(decoded, steps)
  const withoutSession = spellings && spellingsWithoutSession(spellings, steps)
  return withoutSession && { spellings, withoutSession }
}

/** Nothing to decode a second time, nothing to convert, no separator but slashes. */
const ONE_SPELLING = /^[\x20-\x24\x26-\x5b\x5d-\x7e]*$/

/** The texts of a decoded path, or of a part of it, beginning with the given one. `undefined` in the same cases as `textsOf`. */
export function spellingsOf(decoded: string, steps: Steps = { count: 0 }): readonly string[] | undefined {
  if (ONE_SPELLING.test(decoded)) return [decoded]
  const found = new Set([decoded])
  // The loop also visits the texts that it adds.
  for (const text of found) {
    if (!spend(steps, stepsOf(text))) return undefined
    for (const other of nextSpellings(text)) {
      if (other === undefined) return undefined
      found.add(other)
    }
    if (found.size > MAX_SPELLINGS) return undefined
  }
  return [...found]
}

/** The cost of finding the next spellings of a text: escapes and characters beyond ASCII take longer than others. */
function stepsOf(text: string): number {
  const letters = isAscii(text) ? text.length : 5 * text.length
  return letters + 3 * countOf(text, '%') + 6 * countOf(text, KEPT_ESCAPE)
}

function countOf(text: string, sign: string): number {
  let count = 0
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) count++
  return count
}

/** Returns false if the work would be too much. */
function spend(steps: Steps, count: number): boolean {
  if (steps.count + count > MAX_STEPS) return false
  steps.count += count
  return true
}

/** The texts after one more step of an application; `undefined` for a text with a control character. */
function nextSpellings(text: string): (string | undefined)[] {
  // A server that compares paths without decoding does nothing else with them.
  if (text.includes(KEPT_ESCAPE)) return [withoutKeptEscapes(text)]
  const next: (string | undefined)[] = []
  if (text.includes(SLASH_IN_NAME)) next.push(text.replaceAll(SLASH_IN_NAME, '/'))
  if (text.includes('\\')) next.push(text.replaceAll('\\', '/'))
  if (text.includes('%')) {
    next.push(decodeAgain(text, decodeLeniently))
    // Others leave out bytes that are not UTF-8.
    if (/%[89a-f]/i.test(text)) next.push(decodeAgain(text, bytes => bytes.toString().replaceAll('\ufffd', '')))
  }
  if (isAscii(text)) return next
  const folded = fold(text)
  // Segments are compared without regard to capitals anyway.
  if (folded !== foldCase(text)) next.push(folded)
  return next
}

/** `%u002f` is an escape of old IIS. */
const ESCAPE = /(?:%[\da-f]{2})+|%u[\da-f]{4}/gi

function decodeAgain(text: string, decodeBytes: (bytes: Buffer) => string): string | undefined {
  let hasControl = false
  const decoded = text.replace(ESCAPE, escaped => {
    const characters = /^%u/i.test(escaped)
      ? String.fromCharCode(Number.parseInt(escaped.slice(2), 16))
      : decodeBytes(Buffer.from(escaped.replaceAll('%', ''), 'hex'))
    hasControl ||= hasControlCharacter(characters)
    return characters.replaceAll('/', SLASH_IN_NAME)
  })
  return hasControl ? undefined : decoded
}

function hasControlCharacter(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 0x20 || text[at] === '\x7f') return true
  return false
}

/** Decodes like a decoder that checks nothing and accepts overlong UTF-8. */
function decodeLeniently(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0
    const more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
    let code = more === 0 ? first : first & (0x3f >> more)
    for (const next of bytes.subarray(at + 1, at + 1 + more)) code = (code << 6) | (next & 0x3f)
    const isCharacter = at + more < bytes.length && code <= 0x10ffff
    text += String.fromCodePoint(isCharacter ? code : first)
    at += isCharacter ? 1 + more : 1
  }
  return text
}

/**
 * ASP.NET removes `/(S(…))`, also with other letters, anywhere in a path, once or several times. What remains on both sides may become
 * one segment.
 */
const SESSION_SEGMENTS = [/\/\([^/]*\)(?=\/|$)/g, /\/\([^/]*\)/g, /\/\((?:(?!\/\().){0,256}?\)(?=\/|$)/gs]
const NO_TEXTS: readonly string[] = []

function spellingsWithoutSession(spellings: readonly string[], steps: Steps): readonly string[] | undefined {
  if (!spellings.some(spelling => spelling.includes('/('))) return NO_TEXTS
  const shortened = spellings.flatMap(spelling =>
    // With the slash before the segment, and without it.
    SESSION_SEGMENTS.flatMap(part => [spelling.replace(part, ''), spelling.replace(part, '/')]),
  )
  const found = new Set<string>()
  for (const text of new Set(shortened.map(text => (text.startsWith('/') ? text : `/${text}`)))) {
    if (spellings.includes(text)) continue
    const others = spend(steps, text.length) ? spellingsOf(text, steps) : undefined
    for (const other of others ?? []) found.add(other)
    if (!others || found.size > 2 * MAX_SPELLINGS) return undefined
  }
  return [...found]
}

// Interpretations: the meaning of a spelling's segments to an application. It may drop parameters and empty segments, take a suffix
// for a format, trim signs and spaces, cut at a question mark, ignore case, or serve a folder with its index page. Each spelling is
// walked along the tree of the rules, through all nodes that its segments could mean.

export interface Interpretation {
  /** Decoded, as far as the application reads it; `shownPath` for people. */
  readonly path: string
  readonly rules: readonly Rule[]
  /** The node that the whole path names; everything below the path is below this node. Absent for a file, and where no rule follows. */
  readonly node?: RuleNode
}

/** A typical segment. */
const PLAIN = /^[a-z\d_-]+$/
/** Names are letters, digits, dashes and underscores. Any other character after a name might not be part of it. */
const SIGN = /[^\p{L}\p{N}\p{M}_-]/gu
/** Servers that decode before they parse end the path there; for some, a parameter is the rest of the path. */
const CUT = /[;?#]/
/** What follows a script in a path is its argument, or the page that it shows. */
const SCRIPT = /\.(?:php\d?|phtml|aspx?|ashx|asmx|jspx?|cgi|fcgi|pl|py|rb|cfm|do|action)(?![\w-])/
/** The extensions that servers try or respond with if a path has none. */
const PAGE =
  /\.(?:x?html?|shtml|json|xml|php\d?|phtml|aspx?|ashx|asmx|jspx?|jsf|faces|cgi|fcgi|pl|py|rb|cfm|do|action)$/
/** Any file: lighttpd, and Apache with AcceptPathInfo, serve it whatever follows it. `v1.0` is not a file. */
const FILE = /\.(?=\d*[a-z])[a-z\d]{1,7}(?![\w-])/
/** Pages that a folder is served with. To most applications a bare `home` is another page. */
const INDEX_PAGE = /^(?:(?:index|default)(?![\w-])|(?:home|welcome|iisstart)\.)/
/** Nothing remains after spaces and signs are trimmed, or after a cut. */
const NAMELESS = /^\s*(?:$|[%;:?#]|[^\p{L}\p{N}_-](?![\p{L}\p{N}_-]))/u
const INVISIBLE_THEN_SIGN = /^[\s+\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]+[^\p{L}\p{N}_-]/u
/** Windows has a second name like this for every name that is not in 8.3 form (`DATA~1.JSO` for `data.json`). */
const SHORT_NAME = /^([^.~]{1,6})~\d/
const NEEDS_NO_SHORT_NAME = /^[^. ]{1,8}(?:\.[^. ]{1,3})?$/
/** If many names begin alike, four hash digits follow their first two letters. */
const HASHED_NAME = /^(.{1,2})[\da-f]{4}$/

export const LENIENT: SegmentNames = {
  /** A number with leading zeros is the same number. */
  keyOf(segment) {
    const folded = fold(segment)
    return /^0\d*$/.test(folded) ? folded.replace(/^0+(?=\d)/, '') : folded
  },
  aliasOf: key => (PAGE.test(key) ? key.replace(PAGE, '') : undefined),
  isIndexPage: key => INDEX_PAGE.test(key),
}

/** Such a path has only one interpretation, if all rules are plain too. */
export function isPlain(path: string): boolean {
  return path === '/' || (/^(?:\/[a-z\d_-]+)+$/.test(path) && !/\/(?:index|default)(?:\/|$)/.test(path))
}

/** A plain path matches such a rule only if it has the same spelling. */
export function isPlainRule({ path }: Rule): boolean {
  return path.split('/').every(segment => {
    const key = LENIENT.keyOf(segment)
    const isOneOfMany = LENIENT.aliasOf(key) !== undefined || LENIENT.isIndexPage(key) || /^\d+$/.test(key)
    return !isOneOfMany && (key === segment || !isPlain(`/${key}`))
  })
}

/** `spellings` are those of the text after the path of `start`; each begins with the slash after that path. */
export function interpretationsOf(start: RuleNode, spellings: readonly string[], method: string): Interpretation[] {
  const found: Interpretation[] = []
  for (const spelling of spellings) walk(start, spelling, method, found)
  return found
}

/** The interpretation of a path that an exact rule names: its author knows what is served there. */
export function interpretationAt(node: RuleNode, method: string): Interpretation {
  return { path: node.path, rules: decidingRules(node, method, true), node }
}

function walk(start: RuleNode, spelling: string, method: string, found: Interpretation[]): void {
  let nodes: ReadonlySet<RuleNode> = new Set([start])
  let segmentStart = 1
  for (const segment of spelling.split('/').slice(1)) {
    const segmentEnd = segmentStart + segment.length
    const isLast = segmentEnd === spelling.length
    const meaning = meaningOf(segment)
    const next = new Set<RuleNode>()
    for (const node of nodes) {
      const children = childrenFor(node, meaning)
      // The path continues below the node, with a name that no rule has.
      if (!children.some(({ spellings }) => spellings.has(segment)))
        found.push({ path: below(node, spelling.slice(segmentStart)), rules: decidingRules(node, method, false) })
      // What follows a page is its argument, even if the page is requested without its suffix (`/page/x` for `/page.php`).
      for (const child of children) if (meaning.mayEnd || child.hasAlias) endAt(child, method, meaning.isCut, found)
      if (meaning.mayEndBefore) endAt(node, method, meaning.isCut, found)
      if (meaning.isNameless || (meaning.isScript && !isLast)) next.add(node)
      for (const child of children) next.add(child)
    }
    if (next.size === 0) return
    nodes = next
    segmentStart = segmentEnd + 1
  }
  for (const node of nodes) endAt(node, method, true, found)
}

/** The path ends at the node, or at one of its index pages. `isWhole`: the path names the node itself, not a file of it. */
function endAt(node: RuleNode, method: string, isWhole: boolean, found: Interpretation[]): void {
  const interpretation = interpretationAt(node, method)
  found.push(isWhole ? interpretation : { path: interpretation.path, rules: interpretation.rules })
  for (const page of node.indexPages) endAt(page, method, false, found)
}

interface Meaning {
  readonly key: string
  readonly isScript: boolean
  readonly isNameless: boolean
  readonly isCut: boolean
  /** The path may end with this segment, whatever follows. */
  readonly mayEnd: boolean
  /** The path may end before this segment. */
  readonly mayEndBefore: boolean
}

function meaningOf(segment: string): Meaning {
  const key = LENIENT.keyOf(segment)
  const isIndexPage = INDEX_PAGE.test(key)
  if (PLAIN.test(key))
    return { key, isScript: false, isNameless: false, isCut: false, mayEnd: false, mayEndBefore: isIndexPage }
  const isScript = SCRIPT.test(key)
  const isCut = CUT.test(key)
  const isNameless = NAMELESS.test(key) || INVISIBLE_THEN_SIGN.test(segment)
  return {
    key,
    isScript,
    isNameless,
    isCut,
    // Some servers treat what follows a file as its argument, as all servers do with scripts.
    mayEnd: isCut || isScript || FILE.test(key),
    mayEndBefore: isIndexPage || (isNameless && isCut),
  }
}

const NO_CHILDREN: readonly RuleNode[] = []

/** The children that a segment could mean. */
function childrenFor({ children, aliases, longestKey }: RuleNode, { key }: Meaning): readonly RuleNode[] {
  if (children.size === 0) return NO_CHILDREN
  const name = key.trimStart()
  const found = new Set(aliases.get(withoutTrailingSigns(name)))
  const add = (child: RuleNode | undefined) => child && found.add(child)
  add(children.get(key))
  if (PLAIN.test(key)) return [...found]
  add(children.get(name))
  for (const { index } of name.matchAll(SIGN)) {
    if (index > longestKey) break
    add(children.get(LENIENT.keyOf(name.slice(0, index))))
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

/** A loop, because a pattern takes quadratic time for a long run of signs that is not at the end. */
function withoutTrailingSigns(name: string): string {
  let end = name.length
  while (end > 0 && ' .~'.includes(name.charAt(end - 1))) end--
  return name.slice(0, end)
}
