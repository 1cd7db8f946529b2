// A moment in time: readable without scripts (in the server's time zone), turned into the reader's own by moments.js.
import { html } from 'hono/html'

const format = new Intl.DateTimeFormat('zh-CN', { dateStyle: 'medium', timeStyle: 'short' })

export function moment(at: number) {
  return html`<time datetime="${new Date(at).toISOString()}">${format.format(at)}</time>`
}
