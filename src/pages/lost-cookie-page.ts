// Shown in place of a second trip to the login page, when the browser did not keep the cookie of the first.
import { html } from 'hono/html'
import { page } from './layout.ts'
import { reference } from './notice-page.ts'
import type { Words } from './words/words.ts'

interface LostCookieView {
  /** The address under which signing in works. */
  readonly baseUrl: string
  /** The host that the browser asked for, if it is another one. */
  readonly otherHost: string | undefined
  readonly requestId: string
}

export function lostCookiePage(words: Words, { baseUrl, otherHost, requestId }: LostCookieView): string {
  const secure = baseUrl.startsWith('https:')
  const { t, rich } = words
  return page({
    words,
    title: t('lost_cookie.title'),
    body: html`
<h1>${t('lost_cookie.heading')}</h1>
<p class="lead">${t('lost_cookie.lead')}</p>
<div class="notice bad"><ul>
${otherHost ? html`<li>${rich('lost_cookie.other_host', { host: html`<code>${otherHost}</code>`, base_url: html`<code>${baseUrl}</code>` })}</li>` : ''}
${secure ? html`<li>${t('lost_cookie.plain_http')}</li>` : ''}
<li>${t('lost_cookie.blocked')}</li>
</ul></div>
<p class="hint">${rich('lost_cookie.hint', { setting: html`<code>BASE_URL</code>` })}</p>
<a class="button" href="${baseUrl}/">${baseUrl}</a>
${reference(words, requestId)}`,
  })
}
