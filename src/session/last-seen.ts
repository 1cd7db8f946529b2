// When a session was last seen, for the console. It is written every few minutes, and no request waits for it. With
// SESSION_IDLE_MINUTES, idle.ts writes it instead, and only for activity.
import { errorFields } from '../errors.ts'
import type { Entry, StoredEntry } from '../stores/store.ts'
import type { LoadedSession } from './cache.ts'
import { sessionFields } from './fields.ts'
import { type DataKeys, newSummary, type SummarizedSession, summaryOf, withSeenAt } from './record.ts'
import type { StoredSessionsOptions } from './stored-sessions.ts'

const RETRY_MS = 10_000
/** The precision of "last seen": a request must not cost a write. */
const LAST_SEEN_PRECISION_MS = 5 * 60_000
/**
 * Enough for 100,000 users who are always active. If far more return at the same time, a write for each would cost several times
 * what their requests do. Sessions that are left out are written at a later request.
 */
const MAX_PER_SECOND = 350

export function createLastSeen({
  store,
  keyring,
  now,
  report,
}: Pick<StoredSessionsOptions, 'store' | 'keyring' | 'now' | 'report'>): (loaded: LoadedSession) => void {
  const noting = new Set<string>()
  const mayNote = createLimit(MAX_PER_SECOND)
  let isFailing = false

  async function note(loaded: LoadedSession): Promise<void> {
    const seenAt = now()
    const stored = await store.read(loaded.key)
    if (!stored) return
    const entry = seenEntry(stored, loaded, seenAt, await keyring.current())
    if (entry) await store.replace(loaded.key, entry, stored.version)
    isFailing = false
  }

  /** Once per outage, not per request: the log may be on the same disk that is full. */
  function reportFailure(error: unknown, loaded: LoadedSession): void {
    if (!isFailing) report('last_seen_not_saved', { ...errorFields(error), ...sessionFields(loaded) })
    isFailing = true
  }

  return loaded => {
    const at = now()
    if (at - loaded.seenAt < LAST_SEEN_PRECISION_MS || noting.has(loaded.key) || !mayNote(at)) return
    const { key } = loaded
    noting.add(key)
    note(loaded)
      .catch((error: unknown) => reportFailure(error, loaded))
      // A store that cannot be written is not tried again at every request.
      .finally(() => setTimeout(() => noting.delete(key), RETRY_MS).unref())
  }
}

/** The record with a new time of last use; `undefined` if its format is unknown. */
export function seenEntry(
  stored: StoredEntry,
  { key, session, signedInAt }: Pick<LoadedSession, 'key' | 'signedInAt'> & { readonly session: SummarizedSession },
  seenAt: number,
  keys: DataKeys,
): Entry | undefined {
  const summary = summaryOf(stored, key, keys) ?? newSummary(session, { signedInAt, seenAt })
  return withSeenAt(stored, summary, seenAt, key, keys)
}

function createLimit(maxPerSecond: number): (at: number) => boolean {
  let second = 0
  let count = 0
  return at => {
    const current = Math.floor(at / 1000)
    if (current !== second) count = 0
    second = current
    return count++ < maxPerSecond
  }
}
