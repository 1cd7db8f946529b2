// What a part has found, and how it is written: as Markdown that also reads well on a terminal.

interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** A figure that has to be reached: missed or not, it is shown as it is. */
export interface Mark {
  readonly what: string
  readonly demanded: string
  readonly measured: string
  readonly met: boolean
}

export interface Findings {
  readonly table: Table
  readonly marks: readonly Mark[]
}

export const whole = (value: number) => Math.round(value).toLocaleString('en')
export const hundredths = (value: number) => value.toFixed(2)
export const megabytes = (bytes: number) => `${whole(bytes / 1e6)} MB`
export const milliseconds = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`

export function atLeast(least: number, what: string, measured: number): Mark {
  return { what, demanded: `at least ${least}`, measured: hundredths(measured), met: measured >= least }
}

export function markTable(marks: readonly Mark[]): Table {
  const rows = marks.map(({ what, demanded, measured, met }) => [what, demanded, measured, met ? 'met' : '**missed**'])
  return { title: 'Marks', columns: ['what', 'demanded', 'measured', ''], rows }
}

export function toMarkdown({ title, columns, rows }: Table): string {
  const all = [columns, columns.map(() => ''), ...rows]
  const widths = columns.map((_, index) => Math.max(3, ...all.map(row => row[index]?.length ?? 0)))
  const lines = all.map((row, index) => {
    const cells = widths.map((width, column) => (index === 1 ? '-'.repeat(width) : (row[column] ?? '').padEnd(width)))
    return `| ${cells.join(' | ')} |`
  })
  return `## ${title}\n\n${lines.join('\n')}\n`
}
