// Why a session ended, for the login page of its browser: a small sealed record under a key that only the holder of the ticket
// can ask for. It contains no user data and lives no longer than the session would have.

import { z } from 'zod'
import type { Entry, Store, StoredEntry } from '../stores/store.ts'
import type { DataKeyring } from './data-keys.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from './sealing.ts'
import { isTicket, recordKey } from './ticket.ts'

/** Reasons that a `session_ended` event can have. */
export const REPORTED_END_REASONS = [
  'idle',
  'session_limit',
  'refresh_failed',
  'subject_changed',
  'requirement_failed',
  'unbound',
] as const

/** Reasons that the login page has a text for. */
export const END_REASONS = [
  ...REPORTED_END_REASONS,
  'ended_by_developer',
  'ended_by_user',
  'ended_by_provider',
] as const
export type EndReason = (typeof END_REASONS)[number]

export interface EndReasons {
  /** Keeps the reason for the browser of a session that has just been removed. */
  note(key: string, ended: Pick<Entry, 'expiresAt'>, reason: EndReason): Promise<void>
  /** Removes a session unless it has changed since it was read. Only one of several callers gets true. */
  endUnchanged(stored: StoredEntry, reason: EndReason): Promise<boolean>
  /** Why the session of this ticket ended; `undefined` the second time. */
  take(ticket: string): Promise<EndReason | undefined>
}

const reasonSchema = z.object({ reason: z.enum(END_REASONS) })
/** A record that has ended for every clock, also for one that is behind or that is set back later. */
const ENDED: Entry = { value: new Uint8Array(), expiresAt: 0, labels: [] }

type Keyring = Pick<DataKeyring, 'current'>

export function createEndReasons({
  store,
  keyring,
}: {
  readonly store: Pick<Store, 'create' | 'read' | 'replace' | 'take'>
  readonly keyring: Keyring
}): EndReasons {
  const note: EndReasons['note'] = (key, ended, reason) => noteReason({ store, keyring }, key, ended, reason)

  return {
    note,

    async endUnchanged(stored, reason) {
      if ((await store.replace(stored.key, ENDED, stored.version)) === undefined) return false
      await note(stored.key, stored, reason)
      return true
    },

    async take(ticket) {
      if (!isTicket(ticket)) return undefined
      const key = reasonKey(recordKey(ticket))
      // Opening the login page must not cost a write.
      const entry = (await store.read(key)) && (await store.take(key))
      if (!entry) return undefined
      const { publicPart } = await keyring.current()
      return decodeJson(reasonSchema, unsealValue(publicPart, entry.value, key))?.reason
    },
  }
}

/** Removes a session, and keeps the reason. False if it is already gone. */
export async function endWithReason(
  records: { readonly store: Pick<Store, 'create' | 'take'>; readonly keyring: Keyring },
  key: string,
  reason: EndReason,
): Promise<boolean> {
  const ended = await records.store.take(key)
  if (ended) await noteReason(records, key, ended, reason)
  return ended !== undefined
}

/** The session has ended in any case: a login page without the reason is better than a failure. */
async function noteReason(
  { store, keyring }: { readonly store: Pick<Store, 'create'>; readonly keyring: Keyring },
  sessionKey: string,
  { expiresAt }: Pick<Entry, 'expiresAt'>,
  reason: EndReason,
): Promise<void> {
  const key = reasonKey(sessionKey)
  try {
    const { publicPart } = await keyring.current()
    await store.create(key, { value: sealValue(publicPart, encodeJson({ reason }), key), expiresAt, labels: [] })
  } catch {}
}

function reasonKey(key: string): string {
  return `ended:${key}`
}
