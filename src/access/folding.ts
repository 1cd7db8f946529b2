// What lenient applications, databases and file systems take for the same text: capitals, compatibility forms (fullwidth,
// ligatures), accents, invisible characters, the digits of other scripts, and a plus for a space.

const ASCII = /^[\x20-\x7e]*$/
/** Letters that do not decompose, although collations take them for ours: those with a stroke, and medieval ones. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ đ: 'd', ð: 'd', ħ: 'h', ł: 'l', ø: 'o', ꞡ: 'g', ꞣ: 'k', ꞥ: 'n', ꞧ: 'r', ꞩ: 's' },
  ...{ ꞛ: 'a', ꞝ: 'o', ꞟ: 'u', ꝺ: 'd', ꝼ: 'f', ᵹ: 'g', ꟁ: 'o', ꝛ: 'r', ꞃ: 'r', ꞅ: 's', ꟙ: 's', ꞇ: 't', ꟃ: 'w' },
}
const OTHER_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')
/** Normalisation leaves these as they are, best-fit conversions do not. */
const SLASHES = /[\u2044\u2215]/g
/** The same; the signs of yen and won stand in the place of the backslash in Japanese and Korean code pages. */
const BACKSLASHES = /[\u00a5\u20a9\u2216\u29f5\u29f9]/g

export function fold(text: string): string {
  const folded = ASCII.test(text) ? text.toLowerCase() : foldLetters(text)
  return folded.replaceAll('+', ' ')
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

/** Each digit of Unicode that was met, a few hundred at most: to find its value out again would cost a long path milliseconds. */
const DIGITS = new Map<string, string>()

function digitOf(digit: string): string {
  const known = DIGITS.get(digit)
  if (known !== undefined) return known
  const value = digitValue(digit)
  DIGITS.set(digit, value)
  return value
}

/** The digits of a script stand side by side, from zero to nine. */
function digitValue(digit: string): string {
  const code = digit.codePointAt(0) ?? 0
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return String(value)
}

/** The whole text as others may see it, where folding makes a separator or an escape of a character. */
export function otherSpellings(path: string): readonly string[] {
  if (ASCII.test(path)) return []
  const folded = fold(path)
  return folded.includes('%') ? [folded, decodeAgain(folded)] : [folded]
}

function decodeAgain(text: string): string {
  return text.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
