// What becomes of tokens that the provider has just given: they are saved at last, or revoked if their session has ended.
import { setTimeout as pause } from 'node:timers/promises'
import { factsOf } from '../../errors.ts'
import type { HeldTokens } from '../../provider/calls/sign-out-calls.ts'
import type { TokenSet } from '../../provider/token-answer.ts'
import type { LoadedSession } from '../session-cache.ts'
import { sessionFacts } from '../session-facts.ts'
import type { Refresh, RefreshContext, SessionProvider } from './refresher.ts'

const FIRST_SAVE_WAIT_MS = 50
export const LONGEST_SAVE_WAIT_MS = 800
/** Failed savings after which requests are told, while saving goes on. */
const PATIENT_SAVINGS = 6

/** The old tokens are spent: as long as the new ones are worth anything, a store that is away must not cost them. */
export async function saveTokens(
  { now, report, save }: Pick<RefreshContext, 'now' | 'report' | 'save'>,
  { ticket, inTrouble }: Refresh,
  latest: LoadedSession,
  tokens: TokenSet,
): Promise<LoadedSession | undefined> {
  const worthless = tokens.receivedAt + tokens.expiresIn * 1000
  let wait = FIRST_SAVE_WAIT_MS
  for (let failures = 1; ; failures++) {
    try {
      return await save(ticket, latest, { tokens })
    } catch (error) {
      if (now() > worthless) throw error
      report('tokens_not_saved', { ...sessionFacts(latest), ...factsOf(error) })
      if (failures === PATIENT_SAVINGS) inTrouble(error)
      await pause(wait)
      wait = Math.min(wait * 2, LONGEST_SAVE_WAIT_MS)
    }
  }
}

/** Whoever ended the session could only tell the provider of the old tokens. */
export async function revokeTokens(
  { report }: Pick<RefreshContext, 'report'>,
  provider: SessionProvider,
  ended: LoadedSession,
  held: HeldTokens,
): Promise<void> {
  try {
    await provider.signOut(held)
  } catch (error) {
    report('provider_not_told', { ...factsOf(error), ...sessionFacts(ended) })
  }
}
