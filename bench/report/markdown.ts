// Tables as Markdown that also reads well on a terminal.

import type { Mark, Table } from './findings.ts'

export function markTable(marks: readonly Mark[]): Table {
  const said = { met: 'met', missed: '**missed**', 'proves nothing': '*proves nothing*' }
  const rows = marks.map(({ what, demanded, measured, verdict }) => [what, demanded, measured, said[verdict]])
  return { title: 'Marks', columns: ['what', 'demanded', 'measured', ''], rows }
}

export function toMarkdown({ title, columns, rows }: Table, level = '##'): string {
  const all = [columns, columns.map(() => ''), ...rows]
  const widths = columns.map((_, index) => Math.max(3, ...all.map(row => row[index]?.length ?? 0)))
  const lines = all.map((row, index) => {
    const cells = widths.map((width, column) => (index === 1 ? '-'.repeat(width) : (row[column] ?? '').padEnd(width)))
    return `| ${cells.join(' | ')} |`
  })
  return `${level} ${title}\n\n${lines.join('\n')}\n`
}
