// Personal keys, as a user makes them on the account page.

import assert from 'node:assert/strict'
import type { Client } from './client.ts'

export const PERSONAL_KEYS = '/_menshen/account/keys'

/** A new key of this user. `origin` is that of the page. */
export async function makePersonalKey(client: Client, origin: string, name = 'laptop', days = '30'): Promise<string> {
  const { status, text } = await client.post(PERSONAL_KEYS, { name, days }, { headers: { origin } })
  assert.equal(status, 200)
  return personalKeyIn(text)
}

/** The key that the page shows, once. */
export function personalKeyIn(html: string): string {
  return /<code>(mk_[\w-]{43})<\/code>/.exec(html)?.[1] ?? assert.fail('no key')
}
