// Sessions that this process has opened already, so that the next request need not open them again. A bounded memory,
// never a proof: whoever takes one from here asks the store whether it still holds that version.
import { LRUCache } from 'lru-cache'
import type { SignInOrigin } from './public-part.ts'
import type { Session } from './session-record.ts'
import type { Identity } from './user-identity.ts'

export interface LoadedSession {
  readonly key: string
  readonly version: number
  /** When the session ends if nothing refreshes it. */
  readonly expiresAt: number
  readonly signedInAt: number
  readonly seenAt: number
  readonly origin?: SignInOrigin
  readonly session: Session
  /** What rules look at and applications are told. */
  readonly who: Identity
}

/** By ticket. */
type SessionCache = Pick<LRUCache<string, LoadedSession>, 'get' | 'set' | 'delete'>

/** Keeps the most recently used; none if `size` is 0. */
export function createSessionCache(size: number): SessionCache | undefined {
  return size > 0 ? new LRUCache({ max: size }) : undefined
}
