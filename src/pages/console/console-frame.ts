// The frame around the console's pages: which there are, where one is, who one is, and the way out.
import { html } from 'hono/html'
import { OWN_PATHS } from '../../own-paths.ts'
import { icon } from '../icon.ts'
import { languageSwitch } from '../language-switch.ts'
import { document, type Html } from '../layout.ts'
import type { Words } from '../words/words.ts'

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
}

interface ConsoleFrame {
  readonly section: Section
  readonly viewer: Viewer
  /** Of a page below the section's own; otherwise it is the section's. */
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
  const { username, nickname } = viewer
  return document({
    words,
    title: `${title} · ${t('console.title')}`,
    scripts: ['moments.js', ...scripts],
    styles: ['console.css', ...styles],
    body: html`<div class="console">
<header class="bar">
<a class="skip" href="#content">${t('console.skip')}</a>
<p class="brand"><a href="/" aria-label="${t('page.home')}"><img src="${words.look.icon.url}" alt="" width="32" height="32"></a><span>${words.appName} · ${t('console.title')}</span></p>
<div class="actions"><a class="who" href="${OWN_PATHS.account}" title="${username}" aria-label="${t('console.signed_in_as', { name: nickname || username })}">${icon('person')}<span>${nickname || username}</span></a>
${languageSwitch(words, SECTIONS[section])}
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button small quiet">${t('sign_out.title')}</button></form></div>
</header>
<nav aria-label="${t('console.title')}"><ul>${Object.entries(SECTIONS).map(([name, path]) => link(words, name as Section, path, section))}</ul></nav>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${body}
</main>
</div>`,
  })
}

function link({ t }: Words, name: Section, path: string, current: Section) {
  return html`<li><a href="${path}" ${name === current ? html`aria-current="page"` : ''}>${t(`console.${name}`)}</a></li>`
}
