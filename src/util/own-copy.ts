// Strings that are kept for longer than the strings that they were cut from.

/** Copies a string in ASCII: up to Node 24, a substring keeps the whole string alive, as a ticket would keep all cookies. */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
