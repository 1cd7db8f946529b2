// The home page if there is no application behind: who you are, until when, and where you can go from here. For a developer who has
// just started it shows the next steps.
import { html } from 'hono/html'
import { page } from '../pages/layout.ts'
import { displayName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { type AccountView, consoleLink, identityList, signOutForm } from './page.ts'

interface HomeView extends Pick<AccountView, 'providerName' | 'ends'> {
  /** Nothing is configured: the development provider signs users in. */
  readonly isFirstRun: boolean
  readonly baseUrl: string
  readonly callbackPath: string
}

export function homePage(words: Words, loaded: LoadedSession, view: HomeView): string {
  const { t } = words
  const hasSteps = view.isFirstRun && loaded.session.userRole === 'developer'
  return page({
    words,
    title: t('home.title'),
    script: 'moments.js',
    styles: hasSteps ? ['home.css'] : [],
    body: html`
<h1>${t('account.greeting', { name: displayName(loaded.session.userInfo) })}</h1>
${hasSteps ? nextSteps(words, view) : ''}
${identityList(words, loaded, view)}
<p><a class="button quiet" href="${OWN_PATHS.account}">${t('home.account')}</a></p>
${consoleLink(words, loaded)}
${signOutForm(words)}`,
  })
}

/** The same as in docs/first-steps.md. */
const RULES = `import { defineConfig } from 'menshen'

export default defineConfig({
  rules: [
    { path: '/admin', roles: ['developer'] },
    { path: '/finance', groups: ['finance'] },
  ],
})`
const PROVIDER = `PROVIDER=oidc
AUTH_URL=https://sso.example.com
CLIENT_ID=my-application
CLIENT_SECRET=a-long-random-string`

function nextSteps({ t, rich }: Words, { baseUrl, callbackPath }: HomeView) {
  const code = (text: string) => html`<code>${text}</code>`
  return html`<section class="steps" aria-labelledby="next">
<h2 id="next">${t('home.next')}</h2>
<p class="small">${t('home.next_lead')}</p>
<ol>
<li><strong>${t('home.application')}</strong><p class="small">${t('home.application_text')}</p>
<pre tabindex="0"><code>UPSTREAM=http://127.0.0.1:8080 npm start</code></pre></li>
<li><strong>${t('home.rules')}</strong><p class="small">${rich('home.rules_text', { file: code('menshen.config.ts') })}</p>
<pre tabindex="0"><code>${RULES}</code></pre></li>
<li><strong>${t('home.provider')}</strong><p class="small">${rich('home.provider_text', { address: code(baseUrl + callbackPath), file: code('.env') })}</p>
<pre tabindex="0"><code>${PROVIDER}</code></pre></li>
</ol>
</section>`
}
