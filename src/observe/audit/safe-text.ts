// What others have written, for a terminal: nothing in it moves the cursor, changes colours or turns the direction.

const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** The same JSON, with those characters escaped. */
export function safeJson(value: object): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(UNSAFE, escaped)
}

export function safeText(text: string): string {
  return text.replace(UNSAFE, '�')
}
