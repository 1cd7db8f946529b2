// Lenient applications, databases and file systems treat different texts as the same. They ignore capitals, compatibility forms
// (fullwidth, ligatures), accents and invisible characters, and treat the digits of other scripts as ours and a plus as a space:
//
//   fold('/Ａdmin') === fold('/ÀDM\u200bIN') === '/admin'        fold('/٣+x') === '/3 x'

/** Letters that do not decompose, although collations treat them as ours: those with a stroke, and medieval ones. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ đ: 'd', ð: 'd', ħ: 'h', ł: 'l', ø: 'o', ꞡ: 'g', ꞣ: 'k', ꞥ: 'n', ꞧ: 'r', ꞩ: 's' },
  ...{ ꞛ: 'a', ꞝ: 'o', ꞟ: 'u', ꝺ: 'd', ꝼ: 'f', ᵹ: 'g', ꟁ: 'o', ꝛ: 'r', ꞃ: 'r', ꞅ: 's', ꟙ: 's', ꞇ: 't', ꟃ: 'w' },
}
const OTHER_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')
/** Normalisation does not change these, but best-fit conversions do. */
const SLASHES = /[\u2044\u2215]/g
/** The same for backslashes; Japanese and Korean code pages have the yen and won signs in place of the backslash. */
const BACKSLASHES = /[\u00a5\u20a9\u2216\u29f5\u29f9]/g

export function fold(text: string): string {
  return isAscii(text) ? foldCase(text) : foldCase(foldLetters(text))
}

export function isAscii(text: string): boolean {
  return /^\p{ASCII}*$/u.test(text)
}

/** The part of folding that ASCII needs. */
export function foldCase(text: string): string {
  return text.toLowerCase().replaceAll('+', ' ')
}

function foldLetters(text: string): string {
  return (
    text
      .normalize('NFKD')
      // To upper case first: the dotless i and the long s have an ASCII capital.
      .toUpperCase()
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
      .replace(OTHER_LETTERS, letter => LETTERS[letter] ?? letter)
      .replace(/(?![0-9])\p{Nd}/gu, digitOf)
      // Only after our letters: in other scripts a mark makes another letter.
      .replace(/(^|[ -~])[\p{M}·]+/gu, '$1')
      .replace(SLASHES, '/')
      .replace(BACKSLASHES, '\\')
  )
}

/** Unicode digits that have occurred, a few hundred at most: computing their values again would take milliseconds for a long path. */
const DIGITS = new Map<string, string>()

function digitOf(digit: string): string {
  const known = DIGITS.get(digit)
  if (known !== undefined) return known
  const value = digitValue(digit)
  DIGITS.set(digit, value)
  return value
}

/** The digits of a script are consecutive, from zero to nine. */
function digitValue(digit: string): string {
  const code = digit.codePointAt(0) ?? 0
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return String(value)
}
