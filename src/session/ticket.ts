// The ticket: the secret in the cookie that finds and opens a session. The store only ever sees what is derived from it.
import { hash, randomBytes } from 'node:crypto'

const TICKET_BYTES = 32

export function newTicket(): string {
  return randomBytes(TICKET_BYTES).toString('base64url')
}

/** 32 bytes in base64url: a ticket, or the hash of one. */
const TICKET_FORM = /^[\w-]{43}$/

export function isTicket(text: string): boolean {
  return TICKET_FORM.test(text)
}

/** The key of a session. Leases and attempts are in the same store under other keys. */
export function isRecordKey(text: string): boolean {
  return TICKET_FORM.test(text)
}

/** The key of the ticket's record, from which the ticket cannot be derived. */
export function recordKey(ticket: string): string {
  return hash('sha256', `menshen record ${ticket}`, 'base64url')
}

/** The key that opens the ticket's record. A ticket is fully random, so one hash is enough to derive it. */
export function sealingKey(ticket: string): Uint8Array {
  return hash('sha256', `menshen seal ${ticket}`, 'buffer')
}
