// A moment in time: readable without scripts (in the server's time zone), turned into the reader's own by moments.js.
import { html } from 'hono/html'
import type { Words } from './words/words.ts'

export function moment({ date }: Words, at: number) {
  return html`<time datetime="${new Date(at).toISOString()}">${date(at)}</time>`
}
