// SESSIONS_PER_USER: a sign-in beyond the limit ends the oldest sessions of its user, at this provider.
//
// Every process ends sessions beyond the limit in the same order, by `since` and key of the records, and only after its own record
// is in the store. So parallel sign-ins leave the newest sessions, and as many as the limit allows. A new session gets a `since`
// above all others, because the clocks of instances differ, and may have been set back.

import type { Report } from '../events.ts'
import { allEntries } from '../stores/pages.ts'
import type { Store, StoredEntry } from '../stores/store.ts'
import { createSerialQueues } from '../util/serial-queues.ts'
import type { LoadedSession } from './cache.ts'
import type { DataKeyring } from './data-keys.ts'
import type { EndReasons } from './end-reasons.ts'
import { sessionFields } from './fields.ts'
import type { IdleSessions } from './idle.ts'
import { type Session, userIdOf, userLabel } from './record.ts'
import { unpackRecord } from './sealing.ts'

export interface SessionLimit {
  /** The `since` of a new session. */
  sinceOf(session: Session, signedInAt: number): Promise<number>
  /** Ends what is beyond the limit. */
  enforce(loaded: LoadedSession): Promise<void>
  use(most: number): void
}

interface LimitOptions {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current'>
  readonly reasons: EndReasons
  readonly idle: IdleSessions
  readonly report: Report
}

export function createSessionLimit({ store, keyring, reasons, idle, report }: LimitOptions): SessionLimit {
  let most = 0
  const latests = createSerialQueues<number>()
  const enforcementQueues = createSerialQueues<void>()

  const labelOf = async (session: Session) => userLabel(userIdOf(session), await keyring.current())

  /** A session that has already ended is not counted. */
  async function isAlive({ key, value }: StoredEntry, session: Session): Promise<boolean> {
    const seenAt = unpackRecord(value)?.seenAt
    if (seenAt === undefined || !idle.isIdle({ key, seenAt })) return true
    return !(await idle.end({ key, seenAt }, sessionFields({ key, session })))
  }

  async function latestOf(label: string): Promise<number> {
    return (await allEntries(store, label)).reduce((latest, { since = 0 }) => Math.max(latest, since), 0)
  }

  async function endBeyond(label: string, session: Session): Promise<void> {
    const found = await allEntries(store, label)
    const alive = await Promise.all(found.map(stored => isAlive(stored, session)))
    const beyond = found
      .filter((_, n) => alive[n])
      .sort(newestFirst)
      .slice(most)
    await Promise.all(beyond.map(({ key }) => endOne(key, session)))
  }

  async function endOne(key: string, session: Session): Promise<void> {
    // Only one of several parallel callers gets it.
    const ended = await store.take(key)
    if (!ended) return
    await reasons.note(key, ended, 'session_limit')
    report('session_ended', { ...sessionFields({ key, session }), reason: 'session_limit', ended: 1 })
  }

  return {
    use(next) {
      most = next
    },

    async sinceOf(session, signedInAt) {
      if (most === 0) return signedInAt
      const label = await labelOf(session)
      const latest = await latests.join(label, () => latestOf(label))
      return Math.max(signedInAt, latest + 1)
    },

    async enforce({ session }) {
      if (most === 0) return
      const label = await labelOf(session)
      await enforcementQueues.join(label, () => endBeyond(label, session))
    },
  }
}

function newestFirst(one: StoredEntry, other: StoredEntry): number {
  return (other.since ?? 0) - (one.since ?? 0) || (other.key < one.key ? -1 : 1)
}
