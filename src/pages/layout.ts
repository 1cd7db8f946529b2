// The frame around every page: head, card, foot. `html` escapes everything that is inserted.

import { html } from 'hono/html'
import { OWN_PATHS } from '../paths.ts'
import { assetUrl } from './branding.ts'
import type { Words } from './words.ts'

export type Html = ReturnType<typeof html>

interface Document {
  readonly words: Words
  readonly title: string
  readonly body: Html
  readonly scripts?: readonly string[]
  /** In addition to the common one. */
  readonly styles?: readonly string[]
}

interface Card extends Omit<Document, 'scripts'> {
  readonly script?: string
  /** Without the language switch, which would leave a page that has to stay open. */
  readonly isOneLanguage?: boolean
}

const STYLE = assetUrl('menshen.css')

export function page({ words, title, body, script, styles = [], isOneLanguage = false }: Card): string {
  return document({
    words,
    title,
    scripts: script === undefined ? [] : [script],
    styles,
    body: html`<main class="card">
<img class="mark" src="${words.branding.icon.url}" alt="" width="56" height="56">
${body}
</main>
<footer><span>${words.t('page.footer')}</span>
${isOneLanguage ? '' : quietLanguageSwitch(words)}</footer>`,
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
<link rel="icon" href="${words.branding.icon.url}" type="${words.branding.icon.type}">
<link rel="stylesheet" href="${STYLE}">
${[...styles.map(assetUrl), ...words.branding.styles].map(url => html`<link rel="stylesheet" href="${url}">`)}
${scripts.map(script => html`<script type="module" src="${assetUrl(script)}"></script>`)}
</head>
<body>
${body}
</body>
</html>
`)
}

// The choice of another language. The form works without scripts.

/** Fields of the form that changes the language: to which, and where it leads afterwards. */
export const LANGUAGE_FIELDS = { language: 'language', returnTo: 'return' } as const

/** In the bar of the console. `path` is that of the page itself. */
export function languageSwitch(words: Words, path: string) {
  return languageForm(words, 'actions', 'button small quiet', path)
}

/** Below a card. The browser reports which page it is on. */
export function quietLanguageSwitch(words: Words) {
  return languageForm(words, 'languages', 'plain')
}

function languageForm({ t, lang, languages }: Words, formClass: string, buttonClass: string, path?: string) {
  const { language, returnTo } = LANGUAGE_FIELDS
  const others = languages.filter(other => other.lang !== lang)
  return html`<form method="post" action="${OWN_PATHS.language}" class="${formClass}" aria-label="${t('console.language')}">${path === undefined ? '' : html`<input type="hidden" name="${returnTo}" value="${path}">`}
${others.map(other => html`<button type="submit" name="${language}" value="${other.lang}" lang="${other.lang}" class="${buttonClass}">${other.label}</button>`)}</form>`
}

// A moment in time: readable without scripts (in the server's time zone), turned into the reader's own by moments.js.

export function moment({ date }: Words, at: number) {
  return html`<time datetime="${new Date(at).toISOString()}">${date(at)}</time>`
}

/** The moment to the second. */
export function exactMoment({ exactDate }: Words, at: number) {
  return html`<time datetime="${new Date(at).toISOString()}" class="exact">${exactDate(at)}</time>`
}

/** How long ago, or in how long, with the date as its tooltip. */
export function relativeMoment({ date, relative }: Words, at: number, now: number) {
  return html`<time datetime="${new Date(at).toISOString()}" title="${date(at)}" class="relative">${relative(at, now)}</time>`
}

/**
 * Asks for confirmation of something that cannot be undone. `summary` is the button that opens the question, without scripts,
 * too; menus.js closes it on Escape and on a click elsewhere.
 */
export function confirm(summary: Html, question: Html): Html {
  return html`<details class="menu confirm">${summary}<div class="question">${question}</div></details>`
}
