// The console's first page: what is wrong now, in sentences.
import { html } from 'hono/html'
import type { AdviceCode } from '../../settings/advice.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame } from './console-frame.ts'

interface Overview {
  /** What a developer should know about how it runs. */
  readonly warnings: readonly AdviceCode[]
}

export function overviewPage(words: Words, { warnings }: Overview): string {
  const { t } = words
  return consoleFrame(words, {
    section: 'overview',
    body: html`${warnings.map(code => html`<div class="notice bad"><p>${t(`advice.${code}`)}</p></div>`)}
${warnings.length === 0 ? html`<div class="notice good"><p>${t('health.all_good')}</p></div>` : ''}`,
  })
}
