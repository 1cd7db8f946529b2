// Why a session ended, for the login page of its browser. A small record under a key that only the holder of the ticket can ask
// for; it has no data of the user, and lives no longer than the session would have.

import { z } from 'zod'
import type { Entry, Store, Stored } from '../stores/store.ts'
import { decodeJson, encodeJson, packPlain, unpackPlain } from './sealing.ts'
import { isTicket, recordKey } from './ticket.ts'

/** What the login page has a sentence for. */
export const END_REASONS = [
  'idle',
  'session_limit',
  'refresh_failed',
  'subject_changed',
  'requirement_failed',
  'unbound',
  'ended_by_developer',
  'ended_by_user',
  'ended_by_provider',
] as const
export type EndReason = (typeof END_REASONS)[number]

export interface EndReasons {
  /** Keeps the reason for the browser of a session that has just been removed. */
  note(key: string, ended: Pick<Entry, 'expiresAt'>, reason: EndReason): Promise<void>
  /** Removes a session unless it has changed since it was read. True for one of all callers. */
  endUnchanged(stored: Stored, reason: EndReason): Promise<boolean>
  /** Why the session of this ticket ended; the second time `undefined`. */
  take(ticket: string): Promise<EndReason | undefined>
}

const reasonSchema = z.object({ reason: z.enum(END_REASONS) })
const NOTHING = new Uint8Array()

export function createEndReasons({
  store,
  now,
}: {
  readonly store: Pick<Store, 'create' | 'read' | 'replace' | 'take'>
  readonly now: () => number
}): EndReasons {
  const note: EndReasons['note'] = (key, ended, reason) => noteReason(store, key, ended, reason)

  return {
    note,

    async endUnchanged(stored, reason) {
      const nothing = { value: NOTHING, expiresAt: now(), labels: [] }
      if ((await store.replace(stored.key, nothing, stored.version)) === undefined) return false
      await note(stored.key, stored, reason)
      return true
    },

    async take(ticket) {
      if (!isTicket(ticket)) return undefined
      const key = reasonKey(recordKey(ticket))
      // A visitor's look at the login page is no write.
      const entry = (await store.read(key)) && (await store.take(key))
      return entry && decodeJson(reasonSchema, unpackPlain(entry.value))?.reason
    },
  }
}

/** Removes a session, and keeps the reason. False if it is gone already. */
export async function endWithReason(
  store: Pick<Store, 'create' | 'take'>,
  key: string,
  reason: EndReason,
): Promise<boolean> {
  const ended = await store.take(key)
  if (ended) await noteReason(store, key, ended, reason)
  return ended !== undefined
}

/** The session has ended in any case: a login page without the sentence is better than a failure. */
async function noteReason(
  store: Pick<Store, 'create'>,
  key: string,
  { expiresAt }: Pick<Entry, 'expiresAt'>,
  reason: EndReason,
): Promise<void> {
  await store
    .create(reasonKey(key), { value: packPlain(encodeJson({ reason })), expiresAt, labels: [] })
    .catch(() => {})
}

function reasonKey(key: string): string {
  return `ended:${key}`
}
