// Text as the value of a header: percent-encoded where needed, and cut if it is too long for applications.

/** Many applications refuse a request whose headers are over 8 KiB; four of these have to fit into it. */
export const MAX_ENCODED_LENGTH = 2048

/** Percent-encodes characters that a header cannot carry, and the percent sign, so that `%61dmin` is not taken for `admin`. */
export function encodeHeaderValue(text: string): string {
  return text.replace(/[^\x21-\x7e]|%/gu, encodeURIComponent)
}

export interface EncodedValue {
  readonly value: string
  readonly isCut: boolean
}

/** Cut between two characters, so that the rest can be decoded. */
export function encodeBounded(
  text: string,
  encode: (text: string) => string,
  maxLength = MAX_ENCODED_LENGTH,
): EncodedValue {
  const whole = encode(text.toWellFormed())
  if (whole.length <= maxLength) return { value: whole, isCut: false }
  let value = ''
  for (const character of text.toWellFormed()) {
    const encoded = encode(character)
    if (value.length + encoded.length > maxLength) break
    value += encoded
  }
  return { value, isCut: true }
}

/** Separated by commas, which are encoded within names; cut between two names, because half of one could be another. */
export function encodeNames(names: readonly string[], maxLength = MAX_ENCODED_LENGTH): EncodedValue {
  const kept: string[] = []
  let length = 0
  for (const name of names) {
    const encoded = encodeHeaderValue(name.toWellFormed()).replaceAll(',', '%2C')
    length += encoded.length + 1
    if (length > maxLength + 1) return { value: kept.join(','), isCut: true }
    kept.push(encoded)
  }
  return { value: kept.join(','), isCut: false }
}
