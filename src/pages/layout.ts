// The frame around every page: head, card, foot. Everything that is put in is escaped by `html`.
import { html } from 'hono/html'
import { assetUrl } from './asset-files.ts'
import { quietLanguageSwitch } from './language-switch.ts'
import type { Words } from './words/words.ts'

export type Html = ReturnType<typeof html>

interface Document {
  readonly words: Words
  readonly title: string
  readonly body: Html
  readonly scripts?: readonly string[]
  /** On top of the common one. */
  readonly styles?: readonly string[]
}

interface Card extends Omit<Document, 'scripts'> {
  readonly script?: string
}

const STYLE = assetUrl('menshen.css')

export function page({ words, title, body, script, styles = [] }: Card): string {
  return document({
    words,
    title,
    scripts: script === undefined ? [] : [script],
    styles,
    body: html`<main class="card">
<img class="mark" src="${words.look.icon.url}" alt="" width="56" height="56">
${body}
</main>
<footer><span>${words.t('page.footer')}</span>
${quietLanguageSwitch(words)}</footer>`,
  })
}

export function document({ words, title, body, scripts = [], styles = [] }: Document): string {
  return String(html`<!doctype html>
<html lang="${words.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · ${words.appName}</title>
<link rel="icon" href="${words.look.icon.url}" type="${words.look.icon.type}">
<link rel="stylesheet" href="${STYLE}">
${[...styles.map(assetUrl), ...words.look.styles].map(url => html`<link rel="stylesheet" href="${url}">`)}
${scripts.map(script => html`<script type="module" src="${assetUrl(script)}"></script>`)}
</head>
<body>
${body}
</body>
</html>
`)
}
