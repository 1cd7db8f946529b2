// The console's page of what the doctor has found.
import { html } from 'hono/html'
import type { Finding } from '../../observe/doctor/finding.ts'
import type { Words } from '../words/words.ts'
import { consoleFrame } from './console-frame.ts'
import { cell, longCell, row, table } from './table.ts'

/** What needs attention stands first. */
const ORDER = ['failure', 'warning', 'good'] as const

export function healthPage(words: Words, findings: readonly Finding[]): string {
  const sorted = ORDER.flatMap(level => findings.filter(finding => finding.level === level))
  const { t, rich } = words
  const columns = [t('health.check'), t('health.result'), t('health.seen'), t('health.remedy')]
  return consoleFrame(words, {
    section: 'health',
    body: html`<p class="lead">${summary(words, findings)}</p>
${table({ label: { text: t('health.results') }, columns, rows: sorted.map(finding => findingRow(words, finding)) })}
<p class="hint">${rich('health.hint', { doctor: html`<code>menshen doctor</code>`, sign_in: html`<code>menshen doctor --sign-in</code>` })}</p>`,
  })
}

function findingRow({ t }: Words, { name, level, seen, remedy }: Finding) {
  return row(html`<code>${name}</code>`, [
    cell(t('health.result'), html`<span class="tag ${level}">${t(`health.${level}`)}</span>`),
    longCell(t('health.seen'), html`<span lang="en">${seen}</span>`),
    longCell(t('health.remedy'), html`<span lang="en">${remedy}</span>`),
  ])
}

function summary({ t }: Words, findings: readonly Finding[]): string {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const [failures, warnings] = [count('failure'), count('warning')]
  if (failures > 0) return t('health.failures', { failures, warnings })
  return warnings > 0 ? t('health.warnings', { warnings }) : t('health.all_good')
}
