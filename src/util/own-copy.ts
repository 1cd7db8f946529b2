// Texts that are kept for longer than those they were cut from.

/** Of a text in ASCII: up to Node 24, V8 keeps the whole of a longer text with a part of it, such as all cookies with a ticket. */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
