// Fills an embedded store with sessions, as if that many users had signed in, and saves cookies that open some of them:
// `node bench/servers/preload.ts DIRECTORY COUNT LIFE_SECONDS COOKIES_FILE COOKIES`, with CLIENT_SECRET in the environment; with a
// life below zero they have expired. It is a separate process, so that none of this is in the memory of what is measured. The only
// part of the benchmarks that knows the internals of Menshen: a million sign-ins take too long.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_ROLES, roleOf } from '../../src/access/roles.ts'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { labelsOf, newSession, newSummary, sealSummary, toEntry } from '../../src/session/record.ts'
import { newTicket, recordKey } from '../../src/session/ticket.ts'
import { createChangeApplier } from '../../src/stores/sqlite/changes.ts'
import { openForWriting } from '../../src/stores/sqlite/file.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Entry } from '../../src/stores/store.ts'

import { newToken, userInfoOf, userNumber } from './users.ts'

/** How many records are written in one transaction. */
const AT_ONCE = 100_000
const MAX_HOURS = 168

const [directory = '', count = '', life = '', file = '', wanted = ''] = process.argv.slice(2)
const derived = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret(process.env.CLIENT_SECRET ?? '') })
const keys = await makeKeys()
const database = openForWriting(join(directory, 'menshen.db'))
database.exec('PRAGMA wal_autocheckpoint = 10000')
const changes = createChangeApplier(database)
const cookies: string[] = []

const visited = Math.min(Number(count), Number(wanted))
// The sessions that are never visited come first, so that the newest are real ones.
writeAll(Number(count) - visited, copyOf(newRecord(0)))
writeAll(visited, number => {
  const { ticket, entry } = newRecord(number)
  cookies.push(`menshen_session=${ticket}`)
  return { key: recordKey(ticket), entry }
})
writeFileSync(file, cookies.join('\n'))
database.close()

/** Creates the keys as a first start does. */
async function makeKeys() {
  const store = await openSqliteStore({ file: join(directory, 'menshen.db'), now: Date.now, sweepIntervalMs: 2 ** 30 })
  const made = await createDataKeyring({ store, keys: derived, now: Date.now, report() {} }).current()
  await store.close()
  return made
}

/** Not one by one: each would wait for the disk. */
function writeAll(total: number, make: (number: number) => { key: string; entry: Entry }): void {
  for (let from = 0; from < total; from += AT_ONCE) {
    database.exec('BEGIN')
    for (let number = from; number < Math.min(from + AT_ONCE, total); number++)
      changes.apply({ verb: 'create', ...make(number), now: 0 })
    changes.finish()
    database.exec('COMMIT')
  }
}

/** A session that no ticket opens costs no cryptography; for the store it is as good as any. */
function copyOf({ entry }: { entry: Entry }) {
  return () => {
    const user = newTicket()
    const labels = entry.labels.map((label, index) => (index === 0 ? label : recordKey(`${user} ${index}`)))
    return { key: recordKey(user), entry: { ...entry, labels } }
  }
}

function newRecord(number: number): { ticket: string; entry: Entry } {
  const username = userNumber(number)
  const lifeSeconds = Number(life)
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
    { tokens, user: { userInfo: userInfoOf(username), groups: [], claims: {} }, provider: undefined },
    roleOf({ username, groups: [], claims: {} }, DEFAULT_ROLES),
  )
  const key = recordKey(ticket)
  const times = { signedInAt: receivedAt, seenAt: receivedAt }
  const summaryPart = sealSummary(newSummary(session, times), key, keys)
  const parts = { summaryPart, claimsPart: new Uint8Array() }
  return {
    ticket,
    entry: toEntry({ ticket, key, session, labels: labelsOf(session, keys), ...times, ...parts }, MAX_HOURS),
  }
}
