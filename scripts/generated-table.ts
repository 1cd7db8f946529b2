// Replaces the rows of one table in a page of docs/; the text around it is written by hand.

/** The page with these rows below the heading row of the table. The table ends with the first empty line. */
export function withTable(page: string, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = `${tableRow(columns)}\n|${'---|'.repeat(columns.length)}\n`
  const start = page.indexOf(head)
  if (start < 0) throw new Error(`no table begins with ${tableRow(columns)}`)
  const body = start + head.length
  const rest = page.slice(body)
  const after = /^\n|\n\n/.exec(rest)
  const end = after ? after.index + after[0].length - 1 : rest.length
  return `${page.slice(0, body)}${rows.map(row => `${tableRow(row)}\n`).join('')}${rest.slice(end)}`
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}
