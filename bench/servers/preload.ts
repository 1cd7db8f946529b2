// Fills an embedded store with sessions, as if as many users had signed in, and writes down cookies that open some of
// them: `node bench/servers/preload.ts DIRECTORY COUNT LIFE_SECONDS COOKIES_FILE COOKIES`, with CLIENT_SECRET in the
// environment; a life below zero has ended already. A process of its own, so that none of this is in the memory of what
// is measured. The only part of the benchmarks that knows how Menshen is made inside: a million sign-ins take too long.

import { writeFileSync } from 'node:fs'
import { USUAL_ROLES } from '../../src/access/roles.ts'
import { createDataKeyring } from '../../src/session/keys/data-keys.ts'
import { deriveKeys } from '../../src/session/keys/derived-keys.ts'
import { newSession, toEntry } from '../../src/session/session-record.ts'
import { newTicket, recordKey } from '../../src/session/ticket.ts'
import { Secret } from '../../src/settings/secret.ts'
import { openLmdbStore } from '../../src/stores/lmdb/lmdb-store.ts'
import { inParallel } from '../in-parallel.ts'
import { newToken, userInfoOf, userNumber } from './users.ts'

/** How many writes wait for the disk together. */
const AT_ONCE = 5000
const MAX_HOURS = 168
const NEVER_MS = 2 ** 30

const [directory = '', count = '', life = '', file = '', wanted = ''] = process.argv.slice(2)
const derived = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret(process.env.CLIENT_SECRET ?? '') })
const store = await openLmdbStore({ directory, now: Date.now, sweepEveryMs: NEVER_MS })
const keys = await createDataKeyring({ store, keys: derived, now: Date.now, report() {} }).current()
const cookies: string[] = []

await inParallel(Array(Number(count)).keys(), AT_ONCE, async number => {
  const ticket = await signIn(userNumber(number), Number(life))
  if (cookies.length < Number(wanted)) cookies.push(`menshen_session=${ticket}`)
})
writeFileSync(file, cookies.join('\n'))
await store.close()

async function signIn(username: string, lifeSeconds: number): Promise<string> {
  const now = Date.now()
  const receivedAt = lifeSeconds > 0 ? now : now + 2 * lifeSeconds * 1000
  const ticket = newTicket()
  const tokens = {
    accessToken: newToken(username),
    refreshToken: newToken(username),
    expiresIn: Math.abs(lifeSeconds),
    receivedAt,
  }
  const session = newSession(
    { tokens, facts: { userInfo: userInfoOf(username), groups: [], claims: {} }, provider: undefined },
    USUAL_ROLES,
  )
  const { nickname } = session.userInfo
  const card = { username, nickname, userRole: session.userRole, signedInAt: receivedAt, seenAt: receivedAt }
  await store.create(recordKey(ticket), toEntry(ticket, session, card, MAX_HOURS, keys))
  return ticket
}
