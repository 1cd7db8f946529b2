// The caller of a request, and the verdict of the rules.

import type { DestinationProblem } from '../access/affected-paths.ts'
import type { AuthenticationDemand, RefusalCode } from '../access/conditions.ts'
import type { Rule } from '../config/file.ts'
import type { Identification } from '../http/caller.ts'
import type { LoadedSession } from '../session/cache.ts'
import type { ProgramCaller } from './bearer.ts'
import type { ResourceChallenge } from './protected-resources.ts'

/** The caller, or why there is none. */
export interface CallerIdentification extends Identification {
  readonly program?: ProgramCaller
  readonly reidentify?: () => Promise<ProgramCaller | undefined>
  /** There is a session, but its access token has expired and the provider is unavailable: a visitor, for this answer. */
  readonly isProviderUnavailable?: true
  /** The store cannot confirm that the session is still valid: see gateway/admit-without-store.ts. */
  readonly isUnconfirmed?: true
  /** The ticket opens no session. */
  readonly failedTicket?: true
  /** The token is not valid. It was counted before the provider was asked about it. */
  readonly failedToken?: true
  /** The address has sent too many tokens: the provider was not asked about this one. */
  readonly isLimited?: true
  /** Where a client that is not admitted learns how to get a token, if the rule accepts any. */
  readonly resource?: ResourceChallenge | undefined
  /** The key is not valid, or the rule accepts none. */
  readonly keyProblem?: 'invalid_key' | 'key_not_accepted'
  /** A visitor; the rule would admit a program with a key. */
  readonly acceptsKey?: true
}

/** The identification of a signed-in user. */
export type SignedInCaller = CallerIdentification & { readonly loaded: LoadedSession }

export interface Admission extends CallerIdentification {
  /**
   * `limited`: a visitor whose address has sent too many tickets or tokens that are not valid. `step_up`: the rules admit the
   * caller once they have signed in again, or in another way. `unavailable`: the caller has a session, see `isProviderUnavailable`.
   * `unreadable`: the Destination cannot be judged.
   */
  readonly outcome: 'visitor' | 'limited' | 'refused' | 'step_up' | 'unavailable' | 'unreadable' | 'admitted'
  /** Why it is `unreadable`. */
  readonly destinationProblem?: DestinationProblem
  /** The rule that refused. */
  readonly refusedBy?: Rule
  /** The condition of a rule that is not met, though the rule is for this caller. */
  readonly condition?: RefusalCode
  /** What a `step_up` has to fulfil. */
  readonly demands?: readonly AuthenticationDemand[]
  /** All scopes that the rules require, if the token of a machine lacks one of them. */
  readonly missingScopes?: readonly string[]
}
