// A page that says one thing: something was refused, or it is done.

import { html } from 'hono/html'
import { type Html, page } from './page.ts'

export function messagePage(title: string, sentence: string): Html {
  return page(
    title,
    html`<section class="card notice">
<h1>${title}</h1>
<p>${sentence}</p>
</section>
<p class="aside"><a href="/">控制面板</a></p>`,
  )
}
