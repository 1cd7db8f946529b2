// Text as the value of a header: what it cannot carry is percent-encoded, and what is too long for applications is cut.

/** Many applications refuse a request whose headers are over 8 KiB; four of these have to fit into it. */
const LONGEST_VALUE = 2048

/** What a header cannot carry is percent-encoded; so is the percent sign, or `%61dmin` could be taken for somebody else. */
export function printable(text: string): string {
  return text.replace(/[^\x21-\x7e]|%/gu, encodeURIComponent)
}

export interface Encoded {
  readonly value: string
  readonly isCut: boolean
}

/** Cut between two characters, so that what is left can still be decoded. */
export function encodeBounded(text: string, encode: (text: string) => string): Encoded {
  const whole = encode(text.toWellFormed())
  if (whole.length <= LONGEST_VALUE) return { value: whole, isCut: false }
  let value = ''
  for (const character of text.toWellFormed()) {
    const encoded = encode(character)
    if (value.length + encoded.length > LONGEST_VALUE) break
    value += encoded
  }
  return { value, isCut: true }
}

/** Separated by commas, which no name can bring in; cut between two names, for half of one could be another. */
export function encodeNames(names: readonly string[]): Encoded {
  const kept: string[] = []
  let length = 0
  for (const name of names) {
    const encoded = printable(name.toWellFormed()).replaceAll(',', '%2C')
    length += encoded.length + 1
    if (length > LONGEST_VALUE + 1) return { value: kept.join(','), isCut: true }
    kept.push(encoded)
  }
  return { value: kept.join(','), isCut: false }
}
