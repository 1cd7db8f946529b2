// Tables that are lists on a phone. Their roles are said once more because browsers forget them there.
import { html } from 'hono/html'
import type { Html } from '../layout.ts'

interface Table {
  /** The id of its heading, or a sentence of its own. */
  readonly label: { readonly by: string } | { readonly text: string }
  readonly columns: readonly string[]
  readonly rows?: readonly Html[]
  /** Rows that belong together. */
  readonly groups?: readonly (readonly Html[])[]
}

export function table({ label, columns, rows = [], groups = [rows] }: Table): Html {
  const named = 'by' in label ? html`aria-labelledby="${label.by}"` : html`aria-label="${label.text}"`
  const cells = columns.map(name => html`<th scope="col" role="columnheader">${name}</th>`)
  return html`<table role="table" ${named}>
<thead role="rowgroup"><tr role="row">${cells}</tr></thead>
${groups.map(
  group => html`<tbody role="rowgroup">${group}</tbody>
`,
)}
</table>`
}

export function row(head: unknown, cells: readonly Html[]): Html {
  return html`<tr role="row"><th scope="row" role="rowheader">${head}</th>${cells}</tr>
`
}

/** With the name of its column, which a phone shows beside it. */
export function cell(label: string, content: unknown): Html {
  return html`<td role="cell" data-label="${label}"><span>${content}</span></td>`
}

/** The same for words of any length. */
export function longCell(label: string, content: unknown): Html {
  return html`<td role="cell" data-label="${label}" class="long"><span>${content}</span></td>`
}

/** For what speaks for itself, such as buttons. */
export function plainCell(content: unknown): Html {
  return html`<td role="cell">${content}</td>`
}
