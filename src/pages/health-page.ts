// The console's page of what the doctor has found.
import { html } from 'hono/html'
import type { Finding } from '../observe/doctor/finding.ts'
import { OWN_PATHS } from '../own-paths.ts'
import { headRow } from './console-page.ts'
import { languageSwitch } from './language-switch.ts'
import { page } from './layout.ts'
import type { Words } from './words/words.ts'

/** What needs attention stands first. */
const ORDER = ['failure', 'warning', 'good'] as const

export function healthPage(words: Words, findings: readonly Finding[]): string {
  const sorted = ORDER.flatMap(level => findings.filter(finding => finding.level === level))
  const { t, rich } = words
  return page({
    words,
    title: t('health.title'),
    style: 'console.css',
    wide: true,
    body: html`
<h1>${t('health.title')}</h1>
<nav><a href="${OWN_PATHS.console}">${t('console.title')}</a> <a href="/">${t('page.home')}</a></nav>
${languageSwitch(words, OWN_PATHS.consoleHealth)}
<p class="lead">${summary(words, findings)}</p>
<table role="table" aria-label="${t('health.results')}">
${headRow([t('health.check'), t('health.result'), t('health.seen'), t('health.remedy')])}
<tbody role="rowgroup">${sorted.map(finding => row(words, finding))}</tbody>
</table>
<p class="hint">${rich('health.hint', { doctor: html`<code>menshen doctor</code>`, sign_in: html`<code>menshen doctor --sign-in</code>` })}</p>`,
  })
}

function row({ t }: Words, { name, level, seen, remedy }: Finding) {
  return html`<tr role="row">
<th scope="row" role="rowheader"><code>${name}</code></th>
<td role="cell"><span class="tag ${level}">${t(`health.${level}`)}</span></td>
<td role="cell" lang="en">${seen}</td>
<td role="cell" lang="en">${remedy}</td>
</tr>`
}

function summary({ t }: Words, findings: readonly Finding[]): string {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const [failures, warnings] = [count('failure'), count('warning')]
  if (failures > 0) return t('health.failures', { failures, warnings })
  return warnings > 0 ? t('health.warnings', { warnings }) : t('health.all_good')
}
