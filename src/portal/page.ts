// The page of the portal: a bar with a link to the account, and a tile for each application. The filter works without scripts;
// portal.js filters while the user types.

import { html, raw } from 'hono/html'
import { CONSOLE_ROLE } from '../config/role-names.ts'
import { icon as drawing } from '../pages/icon.ts'
import { document, type Html, quietLanguageSwitch } from '../pages/layout.ts'
import { hoursText } from '../pages/notices.ts'
import { displayName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { matches, type ShownApplication, type Unavailable } from './applications.ts'
import { tile } from './tile.ts'

/** The field of the form that filters without scripts. */
export const FILTER_FIELD = 'q'

/** With fewer applications, all can be seen at a glance. */
const MIN_APPLICATIONS_FOR_FILTER = 9
const MAX_FILTER_LENGTH = 100

interface PortalView {
  readonly shown: readonly ShownApplication[]
  /** What is in the filter field; empty for all. */
  readonly filter: string
  /** Whether this user can go on to `/`, which is another page. */
  readonly leadsHome: boolean
}

export function portalPage(words: Words, loaded: LoadedSession, { shown, filter, leadsHome }: PortalView): string {
  const { t } = words
  const { userInfo, userRole } = loaded.session
  const isDeveloper = userRole === CONSOLE_ROLE
  const hasFilter = shown.length >= MIN_APPLICATIONS_FOR_FILTER
  const typed = hasFilter ? filter.trim().slice(0, MAX_FILTER_LENGTH) : ''
  const found = new Set(shown.filter(({ application }) => matches(application, typed)))
  return document({
    words,
    title: t('portal.title'),
    styles: ['portal.css'],
    scripts: hasFilter ? ['portal.js'] : [],
    body: html`<div class="portal">
<header class="bar">
<a class="skip" href="#content">${t('console.skip')}</a>
<p class="brand"><img src="${words.branding.icon.url}" alt="" width="36" height="36"><span>${words.appName}</span></p>
<nav aria-label="${t('account.title')}">
${isDeveloper ? html`<a class="way" href="${OWN_PATHS.console}">${t('console.title')}</a>` : ''}
<a class="way who" href="${OWN_PATHS.account}" aria-label="${t('console.signed_in_as', { name: displayName(userInfo) })}">${drawing('person')}<span>${t('account.title')}</span></a>
<form method="post" action="${words.paths.logout}"><button type="submit" class="way">${t('sign_out.title')}</button></form>
</nav>
</header>
<main id="content" tabindex="-1">
<div class="head">
<div class="greeting"><h1>${t('account.greeting', { name: displayName(userInfo) })}</h1>
${shown.length === 0 ? '' : status(words, shown.length, typed === '' ? undefined : found.size)}</div>
${hasFilter ? filterForm(words, typed) : ''}
</div>
${shown.length === 0 ? nothingShown(words, isDeveloper, leadsHome) : html`<ul class="applications" aria-label="${t('portal.title')}">${raw(shown.map(one => tileFor(words, one, !found.has(one))).join(''))}</ul>`}
${hasFilter ? html`<p class="nothing" id="nothing"${found.size === 0 ? '' : html` hidden`}>${t('portal.no_match')}</p>` : ''}
</main>
<footer><span>${t('page.footer')}</span>
${quietLanguageSwitch(words)}</footer>
</div>`,
  })
}

/** How many there are, and how many of them match the filter. The script fills in `%shown%`. */
function status({ t }: Words, total: number, found: number | undefined): Html {
  const all = t('portal.count', { count: total })
  const text = found === undefined ? all : t('portal.shown', { shown: found, total })
  return html`<p class="lead" id="status" role="status" data-all="${all}" data-shown="${t('portal.shown', { shown: '%shown%', total })}">${text}</p>`
}

function filterForm({ t }: Words, typed: string): Html {
  return html`<form class="filter" role="search" action="${OWN_PATHS.portal}">${drawing('search')}
<input type="search" id="filter" name="${FILTER_FIELD}" value="${typed}" maxlength="${MAX_FILTER_LENGTH}" placeholder="${t('portal.filter')}" aria-label="${t('portal.filter')}" aria-keyshortcuts="Control+K Meta+K" autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="go">
<kbd aria-hidden="true">Ctrl K</kbd>
</form>`
}

function tileFor(words: Words, { application, unavailable }: ShownApplication, isHidden: boolean): Html {
  if (!unavailable && !isHidden) return raw(application.tile)
  return tile(application, { reason: unavailable && reasonText(words, unavailable), isHidden })
}

function reasonText(words: Words, { code, hours }: Unavailable): string {
  const { t } = words
  if (hours) return t('portal.outside_hours', { hours: hoursText(words, hours) })
  if (code === 'outside_network') return t('portal.outside_network')
  return code === 'step_up_failed' ? t('portal.step_up_failed') : t('portal.unavailable')
}

function nothingShown({ t, rich, support }: Words, isDeveloper: boolean, leadsHome: boolean): Html {
  return html`<div class="nothing"><p>${t(leadsHome ? 'portal.none_listed' : 'portal.none')}</p>
${leadsHome ? html`<p><a class="button" href="/">${t('portal.home')}</a></p>` : ''}
<p class="small">${isDeveloper ? rich('portal.none_developer', { upstreams: html`<code>upstreams</code>`, hosts: html`<code>hosts</code>` }) : t('portal.none_remedy')}</p>
${support ? html`<p class="small support">${rich('page.support', { contact: html`<a href="${support.href}">${support.text}</a>` })}</p>` : ''}</div>`
}
