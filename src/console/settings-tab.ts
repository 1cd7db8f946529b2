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
import { consoleFrame, longCell, row, table, type Viewer, viewerOf } from './frame.ts'

export async function showSettings(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  return pageAnswer(
    context.pages,
    settingsPage(languageOf(context.pages, request), viewerOf(caller), shownTopics(context.settings)),
    { cookies: caller.cookies },
  )
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
  // As they are written in the environment.
  if (isPairs(value))
    return Object.entries(value)
      .map(([name, text]) => hidePassword(`${name}=${text}`))
      .join(', ')
  return hidePassword(String(value ?? '—'))
}

// The page: settings by topic; defaults are dimmed.

export interface ShownSetting {
  readonly name: string
  /** As in the reference, in Markdown. */
  readonly description: string
  readonly descriptionZh: string
  /** Secrets are hidden already. */
  readonly value: string
  /** The default. */
  readonly default: string
}

export interface ShownTopic {
  readonly topic: Topic
  readonly settings: readonly ShownSetting[]
}

export function settingsPage(words: Words, viewer: Viewer, topics: readonly ShownTopic[]): string {
  return consoleFrame(words, {
    section: 'settings',
    viewer,
    body: html`<p class="lead">${words.t('settings.lead')}</p>
${topics.map(topic => topicPart(words, topic))}`,
  })
}

function topicPart(words: Words, { topic, settings }: ShownTopic): Html {
  const { t } = words
  const columns = [t('settings.name'), t('settings.value')]
  const rows = settings.map(setting => settingRow(words, setting))
  return html`<h2 id="${topic}">${t(`topic.${topic}`)}</h2>
<div class="halves">${table({ label: { by: topic }, columns, rows })}</div>
`
}

function settingRow(
  { t, lang }: Words,
  { name, description, descriptionZh, value, default: byDefault }: ShownSetting,
): Html {
  // A language of the operator's own has the English one.
  const [text, of] = lang === 'zh-CN' ? [descriptionZh, lang] : [description, 'en']
  const shown =
    value === byDefault
      ? html`<code class="dim">${value}</code> <span class="dim small">${t('settings.default')}</span>`
      : html`<code>${value}</code><br><span class="small">${t('settings.was', { value: byDefault })}</span>`
  return row(html`<code>${name}</code><p class="small" ${of === lang ? '' : html`lang="${of}"`}>${marked(text)}</p>`, [
    longCell(t('settings.value'), shown),
  ])
}

/** Text in backticks is code; of a link only its text is shown, because the reference is not on this page. */
function marked(description: string): Html {
  const parts = description.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').split('`')
  return html`${parts.map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
