// The texts that applications make of a path before they look at its segments. They decode it once or more, take an encoded
// slash for a separator or for a part of a name, take backslashes for slashes, and convert characters to similar ones.

/** An encoded slash that is part of a name. No path contains this character: control characters are refused. */
const SLASH_IN_NAME = '\0'
/** Begins the escape of a character that needs none: some servers compare paths as they came, and `%61` is not `a` to them. */
const KEPT_ESCAPE = '\x01'

/** More than a path has that is encoded twice. A path with more is refused, not judged by some of them. */
const MOST_SPELLINGS = 32

/** Nothing to decode a second time, nothing to convert, no separator but slashes. */
const ONE_SPELLING = /^[\x20-\x24\x26-\x5b\x5d-\x7e]*$/
const ASCII = new RegExp(`^[${SLASH_IN_NAME}${KEPT_ESCAPE}\\x20-\\x7e]*$`)
const ESCAPE = /(?:%[\da-f]{2})+|%u[\da-f]{4}/gi

/** The escapes of letters, digits, `-`, `.`, `_` and `~`. */
const UNNEEDED_ESCAPE = /%(2[de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi
const ESCAPED_SLASH = /%2f/gi

/**
 * The path split at its slashes and decoded once, but for the escapes that two servers treat differently: this text says
 * which characters were escaped of those that need no escape, and which slashes. It throws if the encoding is broken.
 */
export function decodedPath(path: string): string {
  if (!path.includes('%')) return path
  // Two passes without a callback: 0.1 ms for 4 KB of escapes, where a function for each takes 2.
  const kept = path.replace(ESCAPED_SLASH, SLASH_IN_NAME).replace(UNNEEDED_ESCAPE, `${KEPT_ESCAPE}$1`)
  return decodeURIComponent(kept)
}

/** The text as most servers read it: `%61` is `a`. */
export function withoutKeptEscapes(decoded: string): string {
  if (!decoded.includes(KEPT_ESCAPE)) return decoded
  // The one decoder without a call for each escape.
  return decodeURIComponent(decoded.replaceAll('%', '%25').replaceAll(KEPT_ESCAPE, '%'))
}

/** By which the application is chosen. */
export function decodedOnce(path: string): string {
  return path.includes('%') ? withoutKeptEscapes(decodedPath(path)) : path
}

/** A decoded path for people. */
export function shownPath(decoded: string): string {
  return decoded.replaceAll(SLASH_IN_NAME, '%2F').replaceAll(KEPT_ESCAPE, '%')
}

/**
 * The work that a path may cause, in characters that are decoded or normalised: at most about a millisecond. A path that needs more is
 * refused before the work is done.
 */
const MOST_STEPS = 8192

/** The work so far, shared by all texts of one path. */
export interface Steps {
  count: number
}

/** What the next spellings of a text cost: escapes and characters beyond ASCII take longer than others. */
function stepsOf(text: string): number {
  const letters = ASCII.test(text) ? text.length : 5 * text.length
  return letters + 3 * countOf(text, '%') + 6 * countOf(text, KEPT_ESCAPE)
}

function countOf(text: string, sign: string): number {
  let count = 0
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) count++
  return count
}

/** False if the work would be too much. */
function spend(steps: Steps, count: number): boolean {
  if (steps.count + count > MOST_STEPS) return false
  steps.count += count
  return true
}

/**
 * All texts that a decoded path, or a part of it, is read as, beginning with the given one. `undefined` if there are too many,
 * if they take too much work, or if one of them has a control character.
 */
export function spellingsOf(decoded: string, steps: Steps = { count: 0 }): readonly string[] | undefined {
  if (ONE_SPELLING.test(decoded)) return [decoded]
  const found = new Set([decoded])
  // The loop also visits what it adds.
  for (const text of found) {
    if (!spend(steps, stepsOf(text))) return undefined
    for (const other of nextSpellings(text)) {
      if (other === undefined) return undefined
      found.add(other)
    }
    if (found.size > MOST_SPELLINGS) return undefined
  }
  return [...found]
}

/** The same for what a path becomes in different ways. */
export function allSpellings(paths: readonly string[], steps: Steps = { count: 0 }): readonly string[] | undefined {
  if (paths.length === 0) return paths
  const found = new Set<string>()
  for (const path of paths) {
    const spellings = spend(steps, path.length) ? spellingsOf(path, steps) : undefined
    for (const spelling of spellings ?? []) found.add(spelling)
    if (!spellings || found.size > 2 * MOST_SPELLINGS) return undefined
  }
  return [...found]
}

function* nextSpellings(text: string): Generator<string | undefined> {
  // A server that compares paths as they came does nothing else with them.
  if (text.includes(KEPT_ESCAPE)) return yield withoutKeptEscapes(text)
  if (text.includes(SLASH_IN_NAME)) yield text.replaceAll(SLASH_IN_NAME, '/')
  if (text.includes('\\')) yield text.replaceAll('\\', '/')
  if (text.includes('%')) {
    yield decodeAgain(text, decodeLeniently)
    // Others leave out bytes that are no UTF-8.
    if (/%[89a-f]/i.test(text)) yield decodeAgain(text, bytes => bytes.toString().replaceAll('\ufffd', ''))
  }
  if (ASCII.test(text)) return
  const folded = fold(text)
  // Segments are compared without regard to capitals anyway.
  if (folded !== foldAscii(text)) yield folded
}

/** Also the escapes of old IIS (`%u002f`). */
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

/** As a decoder does it that accepts UTF-8 which is longer than necessary, and checks nothing. */
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

// What lenient applications, databases and file systems take for the same text: capitals, compatibility forms (fullwidth,
// ligatures), accents, invisible characters, the digits of other scripts, and a plus for a space.

/** Letters that do not decompose, although collations take them for ours: those with a stroke, and medieval ones. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ đ: 'd', ð: 'd', ħ: 'h', ł: 'l', ø: 'o', ꞡ: 'g', ꞣ: 'k', ꞥ: 'n', ꞧ: 'r', ꞩ: 's' },
  ...{ ꞛ: 'a', ꞝ: 'o', ꞟ: 'u', ꝺ: 'd', ꝼ: 'f', ᵹ: 'g', ꟁ: 'o', ꝛ: 'r', ꞃ: 'r', ꞅ: 's', ꟙ: 's', ꞇ: 't', ꟃ: 'w' },
}
const OTHER_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')
/** Normalisation leaves these as they are, best-fit conversions do not. */
const SLASHES = /[\u2044\u2215]/g
/** The same; Japanese and Korean code pages have the signs of yen and won instead of the backslash. */
const BACKSLASHES = /[\u00a5\u20a9\u2216\u29f5\u29f9]/g

export function fold(text: string): string {
  return ASCII.test(text) ? foldAscii(text) : foldAscii(foldLetters(text))
}

function foldAscii(text: string): string {
  return text.toLowerCase().replaceAll('+', ' ')
}

function foldLetters(text: string): string {
  return (
    text
      .normalize('NFKD')
      // Through the capital: the dotless i and the long s have one of ours.
      .toUpperCase()
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
      .replace(OTHER_LETTERS, letter => LETTERS[letter] ?? letter)
      .replace(/(?![0-9])\p{Nd}/gu, digitOf)
      // Only of our letters: in other scripts a mark makes another one.
      .replace(/(^|[ -~])[\p{M}·]+/gu, '$1')
      .replace(SLASHES, '/')
      .replace(BACKSLASHES, '\\')
  )
}

/** Each digit of Unicode that was met, a few hundred at most: to compute its value again would cost a long path milliseconds. */
const DIGITS = new Map<string, string>()

function digitOf(digit: string): string {
  const known = DIGITS.get(digit)
  if (known !== undefined) return known
  const value = digitValue(digit)
  DIGITS.set(digit, value)
  return value
}

/** The digits of a script follow each other, from zero to nine. */
function digitValue(digit: string): string {
  const code = digit.codePointAt(0) ?? 0
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return String(value)
}
