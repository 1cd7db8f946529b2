// The choice of another language, on every page of ours. The form works without scripts.
import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Words } from './words/words.ts'

/** Of the form that changes the language: to which, and where it leads afterwards. */
export const LANGUAGE_FIELDS = { language: 'language', returnTo: 'return' } as const

/** In the bar of the console. `path` is that of the page itself. */
export function languageSwitch(words: Words, path: string) {
  return languageForm(words, 'actions', 'button small quiet', path)
}

/** Below a card. The browser says which page it is on. */
export function quietLanguageSwitch(words: Words) {
  return languageForm(words, 'languages', 'plain')
}

function languageForm({ t, lang, languages }: Words, formClass: string, buttonClass: string, path?: string) {
  const { language, returnTo } = LANGUAGE_FIELDS
  const others = languages.filter(other => other.lang !== lang)
  return html`<form method="post" action="${OWN_PATHS.language}" class="${formClass}" aria-label="${t('console.language')}">${path === undefined ? '' : html`<input type="hidden" name="${returnTo}" value="${path}">`}
${others.map(other => html`<button type="submit" name="${language}" value="${other.lang}" lang="${other.lang}" class="${buttonClass}">${other.label}</button>`)}</form>`
}
