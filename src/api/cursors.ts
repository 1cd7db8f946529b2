// The `next` of a page, which a client returns as `after`. It contains the position where a store continues, and a tag that only
// Menshen can make: a text that was cut, changed or made for another query is refused instead of starting again at the first page.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { DataKeyring } from '../session/data-keys.ts'

export interface Cursors {
  /** `query` is what all pages have in common. */
  encode(query: readonly unknown[], position: string): Promise<string>
  /** `undefined` if the cursor does not belong to the query. */
  decode(query: readonly unknown[], cursor: string): Promise<string | undefined>
}

export const MAX_CURSOR_LENGTH = 500
const FORM = /^([\w-]+)\.([\w-]{22})$/
const TAG_BYTES = 16

export function createCursors(keyring: Pick<DataKeyring, 'current'>): Cursors {
  async function tagOf(query: readonly unknown[], position: string): Promise<Buffer> {
    const { labels } = await keyring.current()
    const text = `api next ${JSON.stringify([...query, position])}`
    return createHmac('sha256', labels).update(text).digest().subarray(0, TAG_BYTES)
  }

  return {
    async encode(query, position) {
      const tag = await tagOf(query, position)
      return `${Buffer.from(position).toString('base64url')}.${tag.toString('base64url')}`
    },

    async decode(query, cursor) {
      const [, encoded, tag = ''] = FORM.exec(cursor) ?? []
      if (encoded === undefined) return undefined
      const position = Buffer.from(encoded, 'base64url').toString()
      const expected = await tagOf(query, position)
      return timingSafeEqual(expected, Buffer.from(tag, 'base64url')) ? position : undefined
    },
  }
}
