// Texts that are kept for longer than those they were cut from.

/** Copies a text in ASCII: up to Node 24, a part of a string keeps the whole string alive, such as a ticket all cookies. */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
