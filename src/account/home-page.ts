// The home page where there is no application behind: who you are, until when, and the ways from here.
import { html } from 'hono/html'
import { page } from '../pages/layout.ts'
import { displayName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { consoleLink, identityList, signOutForms } from './page.ts'

/** `providerName` only where there are several. */
export function homePage(words: Words, loaded: LoadedSession, providerName?: string): string {
  const { t } = words
  return page({
    words,
    title: t('home.title'),
    script: 'moments.js',
    body: html`
<h1>${t('account.greeting', { name: displayName(loaded.session.userInfo) })}</h1>
${identityList(words, loaded, { providerName })}
<p><a class="button quiet" href="${OWN_PATHS.account}">${t('home.account')}</a></p>
${consoleLink(words, loaded)}
${signOutForms(words)}`,
  })
}
