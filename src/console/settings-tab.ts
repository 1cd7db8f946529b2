// GET /_menshen/console/settings: the settings in effect, without their secrets.

import { html } from 'hono/html'
import { Networks } from '../config/networks.ts'
import { readSettings } from '../config/read.ts'
import { hidePassword } from '../config/secret.ts'
import { type Name, type Row, type Settings, TOPIC_NAMES, TOPICS, type Topic } from '../config/settings.ts'
import { languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { Html } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import type { ConsoleContext } from './context.ts'
import { createRowFilter, filterBox, readFilter } from './filter-box.ts'
import { consoleFrame, type Viewer, viewerOf } from './frame.ts'
import { type Column, table } from './table.ts'

export async function showSettings(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const query = new URLSearchParams(request.search)
  const view = {
    viewer: viewerOf(caller),
    topics: shownTopics(context.settings),
    filter: readFilter(query),
    onlyChanged: query.has('changed'),
  }
  return pageAnswer(context.pages, settingsPage(languageOf(context.pages, request), view), { cookies: caller.cookies })
}

function shownTopics(settings: Settings): ShownTopic[] {
  const defaults = readSettings({})
  const shownSetting = ([name, { description, descriptionZh }]: [Name, Row<unknown>]) => ({
    name,
    description,
    descriptionZh,
    value: shown(settings[name]),
    default: shown(defaults[name]),
  })
  return TOPIC_NAMES.map(topic => {
    const rows = Object.entries(TOPICS[topic]) as [Name, Row<unknown>][]
    return { topic, settings: rows.map(shownSetting) }
  })
}

/** Pairs such as those of PROVIDER_VARS, and not a secret. */
function isPairs(value: unknown): value is Record<string, string> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof Networks) return value.rules.map(rule => rule.replace(/^\w+: IPv[46] /, '')).join(', ')
  if (Array.isArray(value)) return value.map(String).join(', ')
  // Written as in the environment.
  if (isPairs(value))
    return Object.entries(value)
      .map(([name, text]) => hidePassword(`${name}=${text}`))
      .join(', ')
  return hidePassword(String(value ?? '—'))
}

// The page: settings by topic; defaults are dimmed.

export interface ShownSetting {
  readonly name: string
  /** The same as in the reference, in Markdown. */
  readonly description: string
  readonly descriptionZh: string
  /** Secrets are already hidden. */
  readonly value: string
  /** The default. */
  readonly default: string
}

export interface ShownTopic {
  readonly topic: Topic
  readonly settings: readonly ShownSetting[]
}

export interface SettingsView {
  readonly viewer: Viewer
  readonly topics: readonly ShownTopic[]
  /** Settings without this text are hidden. */
  readonly filter: string
  readonly onlyChanged: boolean
}

export function settingsPage(words: Words, view: SettingsView): string {
  const { t } = words
  const { viewer, topics, filter, onlyChanged } = view
  const changed = topics.flatMap(({ settings }) => settings).filter(isChanged).length
  const more = html`<label class="choice"><input type="checkbox" id="filter-changed" name="changed" value="yes" ${onlyChanged ? html`checked` : ''}> ${t('settings.only_changed', { count: changed })}</label>`
  return consoleFrame(words, {
    section: 'settings',
    viewer,
    scripts: ['filter.js'],
    body: html`<p class="lead">${t('settings.lead')}</p>
${filterBox(words, { value: filter, more })}
${topics.map(topic => topicPart(words, topic, view))}`,
  })
}

function isChanged({ value, default: byDefault }: ShownSetting): boolean {
  return value !== byDefault
}

function topicPart(words: Words, { topic, settings }: ShownTopic, { filter, onlyChanged }: SettingsView): Html {
  const { t } = words
  const columns: Column<ShownSetting>[] = [
    { title: t('settings.name'), cell: setting => settingName(words, setting) },
    { title: t('settings.value'), kind: 'long', cell: setting => settingValue(words, setting) },
  ]
  const hasText = createRowFilter(columns, filter)
  const isShown = (setting: ShownSetting, n: number) => hasText(setting, n) && (isChanged(setting) || !onlyChanged)
  return html`<section data-filtered ${settings.some(isShown) ? '' : html`hidden`}><h2 id="${topic}">${t(`topic.${topic}`)}</h2>
<div class="halves">${table({ label: { by: topic }, columns, rows: settings, isShown })}</div></section>
`
}

function settingName({ lang }: Words, { name, description, descriptionZh }: ShownSetting): Html {
  // A language that the operator added has no description, so the English one is shown.
  const [text, of] = lang === 'zh-CN' ? [descriptionZh, lang] : [description, 'en']
  return html`<code>${name}</code><p class="small" ${of === lang ? '' : html`lang="${of}"`}>${marked(text)}</p>`
}

function settingValue({ t }: Words, setting: ShownSetting): Html {
  const { value, default: byDefault } = setting
  return isChanged(setting)
    ? html`<code class="changed">${value}</code><br><span class="small">${t('settings.was', { value: byDefault })}</span>`
    : html`<code class="dim">${value}</code> <span class="dim small">${t('settings.default')}</span>`
}

/** Text in backticks becomes code; of a link only the text is shown, because the reference is not on this page. */
function marked(description: string): Html {
  const parts = description.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').split('`')
  return html`${parts.map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
