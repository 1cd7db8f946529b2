// The frame of the console's pages: menu, user, sign-out.

import { html } from 'hono/html'
import { icon } from '../pages/icon.ts'
import { document, type Html, languageSwitch } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'

/** The pages that are shown while the store is unavailable. */
const WITHOUT_STORE: readonly string[] = ['overview', 'health']

/** In the order of the menu. */
const SECTIONS = {
  overview: OWN_PATHS.console,
  sessions: OWN_PATHS.consoleSessions,
  audit: OWN_PATHS.consoleAudit,
  rules: OWN_PATHS.consoleRules,
  health: OWN_PATHS.consoleHealth,
  settings: OWN_PATHS.consoleSettings,
} as const

type Section = keyof typeof SECTIONS

/** The developer who looks at the page. */
export interface Viewer {
  readonly username: string
  readonly nickname: string
  /** The store cannot be asked about the session: the page is shown without any actions. */
  readonly isUnconfirmed?: boolean
}

export function viewerOf({ loaded, isUnconfirmed = false }: ConsoleCaller): Viewer {
  const { username, nickname } = loaded.session.userInfo
  return { username, nickname, isUnconfirmed }
}

interface ConsoleCaller {
  readonly loaded: { readonly session: { readonly userInfo: Viewer } }
  readonly isUnconfirmed?: boolean
}

interface ConsoleFrame {
  readonly section: Section
  readonly viewer: Viewer
  /** The title of a page below its section; by default that of the section. */
  readonly title?: string
  readonly body: Html
  readonly scripts?: readonly string[]
  readonly styles?: readonly string[]
}

export function consoleFrame(
  words: Words,
  { section, viewer, title = words.t(`console.${section}`), body, scripts = [], styles = [] }: ConsoleFrame,
): string {
  const { t } = words
  const { username, nickname, isUnconfirmed } = viewer
  const sections = Object.entries(SECTIONS).filter(([name]) => !isUnconfirmed || WITHOUT_STORE.includes(name))
  return document({
    words,
    title: `${title} · ${t('console.title')}`,
    scripts: ['moments.js', 'menus.js', ...scripts],
    styles: ['console.css', ...styles],
    body: html`<div class="console">
<header class="bar">
<a class="skip" href="#content">${t('console.skip')}</a>
<p class="brand"><a href="/" aria-label="${t('page.home')}"><img src="${words.branding.icon.url}" alt="" width="32" height="32"></a><span>${words.appName} · ${t('console.title')}</span></p>
${isUnconfirmed ? '' : actions(words, section, nickname || username, username)}
</header>
<nav aria-label="${t('console.title')}"><ul>${sections.map(([name, path]) => link(words, name as Section, path, section))}</ul></nav>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${isUnconfirmed ? html`<div class="notice bad" role="alert"><p>${t('console.unconfirmed')}</p></div>` : ''}
${body}
</main>
</div>`,
  })
}

function actions(words: Words, section: Section, name: string, username: string) {
  const { t } = words
  return html`<div class="actions"><a class="who" href="${OWN_PATHS.account}" title="${username}" aria-label="${t('console.signed_in_as', { name })}">${icon('person')}<span>${name}</span></a>
${languageSwitch(words, SECTIONS[section])}
<form method="post" action="${words.paths.logout}"><button type="submit" class="button small quiet">${t('sign_out.title')}</button></form></div>`
}

function link({ t }: Words, name: Section, path: string, current: Section) {
  return html`<li><a href="${path}" ${name === current ? html`aria-current="page"` : ''}>${t(`console.${name}`)}</a></li>`
}

// The overall state in one sentence, distinguished by colour, shape and words.

export type State = 'good' | 'degraded' | 'down'

const STATE_ICONS = { good: 'success', degraded: 'warning', down: 'failure' } as const

export function banner(state: State, title: string, more = ''): Html {
  return html`<div class="banner ${state}" data-state="${state}">${icon(STATE_ICONS[state])}<div><strong>${title}</strong>${more === '' ? '' : html` <span>${more}</span>`}</div></div>`
}

// The page while the store is unavailable.

export function storeUnavailablePage(words: Words, viewer: Viewer, section: 'sessions'): string {
  return consoleFrame(words, {
    section,
    viewer,
    body: html`<div class="notice bad" role="alert"><p>${words.t('console.store_away')}</p></div>`,
  })
}
