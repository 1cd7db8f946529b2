// The settings in effect, topic by topic; what nobody has changed is dimmed.
import { html } from 'hono/html'
import type { Words } from '../words/words.ts'
import { consoleFrame } from './console-frame.ts'
import { longCell, row, table } from './table.ts'

export interface ShownSetting {
  readonly name: string
  /** Secrets are hidden already. */
  readonly value: string
  readonly isDefault: boolean
}

export function settingsPage(words: Words, settings: readonly ShownSetting[]): string {
  const { t } = words
  const columns = [t('console.setting_name'), t('console.setting_value')]
  const rows = settings.map(({ name, value, isDefault }) =>
    row(html`<code>${name}</code>`, [
      longCell(t('console.setting_value'), html`<code class="${isDefault ? 'dim' : ''}">${value}</code>`),
    ]),
  )
  return consoleFrame(words, {
    section: 'settings',
    body: html`<p class="lead">${t('console.settings_lead')}</p>
${table({ label: { text: t('console.settings') }, columns, rows })}`,
  })
}
