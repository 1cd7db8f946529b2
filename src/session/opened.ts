// Sessions that this process has opened already, so that the next request need not open them again. A bounded memory,
// never a proof: whoever takes one from here asks the store whether it still holds that version.
import type { Session } from './record.ts'

export interface Opened {
  readonly key: string
  readonly version: number
  /** When the session ends if nothing refreshes it. */
  readonly expiresAt: number
  readonly signedInAt: number
  readonly seenAt: number
  readonly session: Session
}

export interface OpenedCache {
  get(ticket: string): Opened | undefined
  set(ticket: string, opened: Opened): void
  delete(ticket: string): void
}

/** Keeps the most recently used. */
export function createOpenedCache(size: number): OpenedCache {
  const byTicket = new Map<string, Opened>()
  return {
    get(ticket) {
      const opened = byTicket.get(ticket)
      if (opened && byTicket.size >= size) {
        byTicket.delete(ticket)
        byTicket.set(ticket, opened)
      }
      return opened
    },
    set(ticket, opened) {
      byTicket.delete(ticket)
      byTicket.set(ticket, opened)
      if (byTicket.size > size) byTicket.delete(byTicket.keys().next().value as string)
    },
    delete: ticket => void byTicket.delete(ticket),
  }
}
