// Text from outside, for a terminal or a log: nothing in it moves the cursor, changes colours or the direction, or begins a line.

const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** The unsafe characters that JSON.stringify does not escape. */
const UNESCAPED_BY_JSON = /[\u007f-\u009f\p{Bidi_Control}\u2028\u2029]/u

/** JSON with those characters escaped. */
export function safeJson(value: object): string {
  return JSON.stringify(value).replace(UNSAFE, escaped)
}

/** A line of JSON, with its line break at the end: the same JSON, as safe as `safeJson`. */
export function withoutControls(line: string): string {
  return UNESCAPED_BY_JSON.test(line) ? `${line.trimEnd().replace(UNSAFE, escaped)}\n` : line
}

export function safeText(text: string): string {
  return text.replace(UNSAFE, '�')
}

/** The beginning of a name from outside. */
export function sanitize(name: string, maxLength = 40): string {
  return name.slice(0, maxLength).replace(/[\p{C}\u2028\u2029]+/gu, '?')
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
