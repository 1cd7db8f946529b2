// The frame around every page: head, card, foot. Everything that is put in is escaped by `html`.
import { html } from 'hono/html'
import { assetUrl } from './asset-files.ts'
import type { Words } from './words/words.ts'

export type Html = ReturnType<typeof html>

interface Frame {
  readonly words: Words
  readonly title: string
  readonly body: Html
  readonly script?: string
  /** A stylesheet of its own, on top of the common one. */
  readonly style?: string
  readonly wide?: boolean
}

const STYLE = assetUrl('menshen.css')
const ICON = assetUrl('icon.svg')

export function page({ words, title, body, script, style, wide }: Frame): string {
  return String(html`<!doctype html>
<html lang="${words.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · ${words.appName}</title>
<link rel="icon" href="${ICON}" type="image/svg+xml">
<link rel="stylesheet" href="${STYLE}">
${style ? html`<link rel="stylesheet" href="${assetUrl(style)}">` : ''}
${script ? html`<script type="module" src="${assetUrl(script)}"></script>` : ''}
</head>
<body>
<main class="${wide ? 'card wide' : 'card'}">
<img class="mark" src="${ICON}" alt="" width="56" height="56">
${body}
</main>
<footer>${words.t('page.footer')}</footer>
</body>
</html>
`)
}
