// Writes the table of metrics into docs/monitoring.md, from the rows of src/observe/metrics.ts: `npm run docs`.
// A test fails when the two differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { METRICS, type MetricRow } from '../src/observe/metrics.ts'
import { withTable } from './generated-table.ts'

export const MONITORING_PAGE = new URL('../docs/monitoring.md', import.meta.url)

export function withMetrics(page: string): string {
  return withTable(page, ['metric', 'type', 'labels', 'meaning'], Object.entries(METRICS).map(metricRow))
}

function metricRow([name, { type, labels = {}, shownLabels, help }]: [string, MetricRow]): string[] {
  const shown = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values.join(', ')}`)
  return [`\`${name}\``, type, shownLabels ?? (shown.join('; ') || '–'), help]
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(MONITORING_PAGE, withMetrics(readFileSync(MONITORING_PAGE, 'utf8')))
