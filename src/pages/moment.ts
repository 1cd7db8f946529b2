// A moment in time: readable without scripts (in the server's time zone), turned into the reader's own by moments.js.
import { html } from 'hono/html'
import type { Words } from './words/words.ts'

export function moment({ date }: Words, at: number) {
  return html`<time datetime="${new Date(at).toISOString()}">${date(at)}</time>`
}

/** How long ago, or in how long, with the date for whoever points at it. */
export function relativeMoment({ date, relative }: Words, at: number, now: number) {
  return html`<time datetime="${new Date(at).toISOString()}" title="${date(at)}" class="relative">${relative(at, now)}</time>`
}
