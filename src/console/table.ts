// The tables of the console. A table is a list of columns, each with its title and its cells: the head and the rows cannot differ.
// On a phone every row is a list of its cells, with the title of the column in front. Roles are explicit because browsers drop
// them there.

import { html } from 'hono/html'
import type { Html } from '../pages/layout.ts'

/** The first column names the row. */
export interface Column<Row> {
  readonly title: string
  /** `long` text may break anywhere; `buttons` need no title on a phone; everything else breaks between words. */
  readonly kind?: 'long' | 'buttons'
  cell(row: Row, index: number): unknown
}

export interface RowGroup<Row> {
  /** What the rows belong to, shown as a row above them. */
  readonly head?: Html
  readonly rows: readonly Row[]
}

interface Table<Row> {
  /** The id of the heading, or a text. */
  readonly label: { readonly by: string } | { readonly text: string }
  readonly columns: readonly Column<Row>[]
  readonly rows?: readonly Row[]
  readonly groups?: readonly RowGroup<Row>[]
  /** A row that is not shown is still on the page, for the script of a filter. */
  readonly isShown?: (row: Row, index: number) => boolean
}

export function table<Row>({ label, columns, rows = [], groups = [{ rows }], isShown }: Table<Row>): Html {
  const named = 'by' in label ? html`aria-labelledby="${label.by}"` : html`aria-label="${label.text}"`
  const titles = columns.map(({ title }) => html`<th scope="col" role="columnheader">${title}</th>`)
  return html`<table role="table" ${named}>
<thead role="rowgroup"><tr role="row">${titles}</tr></thead>
${groups.map(
  ({
    head,
    rows,
  }) => html`<tbody role="rowgroup">${head === undefined ? '' : groupHead(head, columns.length)}${tableRows(columns, rows, isShown)}</tbody>
`,
)}
</table>`
}

/** Only the rows, to be added to a table with the same columns. */
export function tableRows<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  isShown: Table<Row>['isShown'] = () => true,
): Html {
  return html`${rows.map(
    (
      row,
      index,
    ) => html`<tr role="row"${isShown(row, index) ? '' : html` hidden`}>${columns.map((column, n) => cellOf(column, row, index, n === 0))}</tr>
`,
  )}`
}

function groupHead(head: Html, columns: number): Html {
  return html`<tr role="row" class="group"><th scope="rowgroup" role="rowheader" colspan="${columns}" aria-colspan="${columns}">${head}</th></tr>
`
}

function cellOf<Row>({ title, kind, cell }: Column<Row>, row: Row, index: number, isFirst: boolean): Html {
  const content = cell(row, index)
  if (isFirst) return html`<th scope="row" role="rowheader">${content}</th>`
  if (kind === 'buttons') return html`<td role="cell" class="buttons">${content}</td>`
  return html`<td role="cell" data-label="${title}" ${kind === 'long' ? html`class="long"` : ''}><span>${content}</span></td>`
}
