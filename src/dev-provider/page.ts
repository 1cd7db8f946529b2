// The frame of every page: a banner that cannot be mistaken for a real sign-in, and the page's own content.

import { html } from 'hono/html'
import type { DevWords } from './words.ts'

export type DevHtml = ReturnType<typeof html>

export function devPage(words: DevWords, title: string, content: DevHtml): DevHtml {
  const { lang, other, provider, warning } = words
  return html`<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · ${provider}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header class="banner"><p><strong>${provider}</strong> <span>${warning}</span></p></header>
<main>
${content}
</main>
<footer><form method="post" action="/language" aria-label="${words.language}"><button class="plain" name="language" value="${other.lang}" lang="${other.lang}">${other.label}</button></form></footer>
</body>
</html>`
}

// A page with one message: something was refused, or it is done.

export function messagePage(words: DevWords, [title, sentence]: readonly [string, string]): DevHtml {
  return devPage(
    words,
    title,
    html`<section class="card notice">
<h1>${title}</h1>
<p>${sentence}</p>
</section>
<p class="aside"><a href="/">${words.panel}</a></p>`,
  )
}
