// A box above tables that shows only the rows with a text. The server hides the others; filter.js does the same as the user types.

import { html } from 'hono/html'
import type { Html } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import type { Column } from './table.ts'

interface FilterBox {
  readonly value: string
  /** Fields of the page's address that stay as they are. */
  readonly keep?: Readonly<Record<string, string>>
  /** Another choice besides the text. */
  readonly more?: Html
}

const MAX_FILTER_LENGTH = 100

export function readFilter(query: URLSearchParams): string {
  return (query.get('filter') ?? '').trim().slice(0, MAX_FILTER_LENGTH)
}

export function filterBox({ t }: Words, { value, keep = {}, more = html`` }: FilterBox): Html {
  return html`<form method="get" class="search" role="search" id="filter" aria-label="${t('filter.label')}">
${Object.entries(keep).map(([name, kept]) => html`<input type="hidden" name="${name}" value="${kept}">`)}<label for="filter-text">${t('filter.label')}</label>
<input type="search" id="filter-text" name="filter" value="${value}" autocomplete="off" spellcheck="false">
${more}
<button type="submit" class="button small">${t('filter.button')}</button>
</form>
<p id="filter-nothing" class="hint" role="status" data-nothing="${t('filter.nothing')}"></p>`
}

/** Whether one of a row's cells contains the text, in any case. */
export function createRowFilter<Row>(columns: readonly Column<Row>[], filter: string) {
  const wanted = filter.toLowerCase()
  return (row: Row, index: number): boolean =>
    wanted === '' || columns.some(({ cell }) => textOf(cell(row, index)).toLowerCase().includes(wanted))
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** The visible text of a cell. */
function textOf(content: unknown): string {
  const text = typeof content === 'string' ? content : String(content).replace(/<[^>]*>/g, '')
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_entity, name: string) => ENTITIES[name] ?? '')
}
