// The settings in effect, topic by topic; what nobody has changed is dimmed.
import { html } from 'hono/html'
import type { Topic } from '../../settings/rows.ts'
import type { Html } from '../layout.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'
import { longCell, row, table } from './table.ts'

export interface ShownSetting {
  readonly name: string
  /** As the reference has it, with the marks of its format. */
  readonly sentence: string
  readonly sentenceZh: string
  /** Secrets are hidden already. */
  readonly value: string
  /** What it would be if nobody had changed it. */
  readonly usual: string
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

function settingRow({ t, lang }: Words, { name, sentence, sentenceZh, value, usual }: ShownSetting): Html {
  // A language of the operator's own has the English one.
  const [description, of] = lang === 'zh-CN' ? [sentenceZh, lang] : [sentence, 'en']
  const shown =
    value === usual
      ? html`<code class="dim">${value}</code> <span class="dim small">${t('settings.default')}</span>`
      : html`<code>${value}</code><br><span class="small">${t('settings.was', { value: usual })}</span>`
  return row(
    html`<code>${name}</code><p class="small" ${of === lang ? '' : html`lang="${of}"`}>${marked(description)}</p>`,
    [longCell(t('settings.value'), shown)],
  )
}

/** What is between backticks is code; of a link the words are left, because the reference is not here. */
function marked(sentence: string): Html {
  const parts = sentence.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').split('`')
  return html`${parts.map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
