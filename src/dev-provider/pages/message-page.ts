// A page that says one thing: something was refused, or it is done.

import { html } from 'hono/html'
import type { Words } from '../dev-words.ts'
import { type Html, page } from './page.ts'

export function messagePage(words: Words, [title, sentence]: readonly [string, string]): Html {
  return page(
    words,
    title,
    html`<section class="card notice">
<h1>${title}</h1>
<p>${sentence}</p>
</section>
<p class="aside"><a href="/">${words.panel}</a></p>`,
  )
}
