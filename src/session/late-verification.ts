// Verifies the id_token of a refresh later if its keys are not available, or if a clock is wrong. The refresh token is spent, so the
// new tokens are saved; the user's identity stays as it was until the id_token is verified.
//
//   0:00  a refresh returns an id_token with an unknown key, and the keys cannot be fetched: its tokens are saved without it
//   0:01  the keys are tried again, then after pauses of up to 30 seconds, until the access token expires
//   0:31  the id_token is valid: it is saved, and the provider is asked who the user is now
//         or it is invalid: the session ends, as it would have at the refresh
//
// The process that refreshed verifies it. If that process stops, or nothing changes, the next refresh returns another id_token.

import { setTimeout as pause } from 'node:timers/promises'
import { InvalidToken, mayBecomeValid } from '../provider/id-token.ts'
import { SubjectMismatch, type TokenSet } from '../provider/token.ts'
import type { LoadedSession } from './cache.ts'

export interface LateVerifications {
  /** Verifies `tokens` in the background. */
  begin(work: LateVerification): void
  /** Abandons what is in flight, and resolves when nothing is. */
  stop(): Promise<void>
}

interface LateVerification {
  readonly saved: LoadedSession
  readonly tokens: TokenSet
  verify(): Promise<TokenSet>
  /** The id_token is valid. */
  done(verified: TokenSet): Promise<void>
  /** The id_token is not valid. */
  failed(error: InvalidToken | SubjectMismatch): Promise<void>
}

const INITIAL_BACKOFF_MS = 1000
const MAX_BACKOFF_MS = 30_000
/** Beyond this number, verification is left to the next refresh. */
const MAX_PENDING = 2000

export function createLateVerifications({ now }: { readonly now: () => number }): LateVerifications {
  const stopped = new AbortController()
  const pending = new Set<Promise<void>>()

  async function run({ tokens, verify, done, failed }: LateVerification): Promise<void> {
    const expiresAt = tokens.receivedAt + tokens.expiresIn * 1000
    for (let wait = INITIAL_BACKOFF_MS; now() < expiresAt; wait = Math.min(wait * 2, MAX_BACKOFF_MS)) {
      await pause(wait, undefined, { signal: stopped.signal, ref: false })
      try {
        return await done(await verify())
      } catch (error) {
        if (error instanceof SubjectMismatch || isFinal(error)) return failed(error)
      }
    }
  }

  return {
    begin(work) {
      if (pending.size >= MAX_PENDING || stopped.signal.aborted) return
      // Not awaited: a failure leaves the session as it is.
      const result = run(work)
        .catch(() => {})
        .finally(() => pending.delete(result))
      pending.add(result)
    },

    async stop() {
      stopped.abort()
      await Promise.all(pending)
    },
  }
}

function isFinal(error: unknown): error is InvalidToken {
  return error instanceof InvalidToken && !mayBecomeValid(error)
}
