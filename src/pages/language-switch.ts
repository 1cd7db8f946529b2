// The choice of another language, where the language is a developer's or a user's own.
import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Words } from './words/words.ts'

/** Of the form that changes the language: to which, and where it leads afterwards. */
export const LANGUAGE_FIELDS = { language: 'language', returnTo: 'return' } as const

/** `path` is that of the page itself. */
export function languageSwitch({ t, lang, languages }: Words, path: string) {
  const { language, returnTo } = LANGUAGE_FIELDS
  const others = languages.filter(other => other.lang !== lang)
  return html`<form method="post" action="${OWN_PATHS.language}" class="actions" aria-label="${t('console.language')}"><input type="hidden" name="${returnTo}" value="${path}">
${others.map(other => html`<button type="submit" name="${language}" value="${other.lang}" lang="${other.lang}" class="button small quiet">${other.label}</button>`)}</form>`
}
