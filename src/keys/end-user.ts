// Ends all access of a user: all sessions and all personal keys, as when an employee leaves. The API and the command take a
// username. The same name at two providers is two users, and both lose their access, with one event for each.

import type { Report } from '../events.ts'
import type { SessionListing } from '../session/listing.ts'
import type { KeyListing } from './personal.ts'

export interface UserEnd {
  /** How many sessions and personal keys have ended. */
  readonly ended: number
  readonly keys: number
}

interface EndUserParts {
  /** Several after a start with another secret. */
  readonly sessions: readonly Pick<SessionListing, 'endNamed'>[]
  readonly keys: Pick<KeyListing, 'revokeOf'>
  readonly report: Report
}

/** `fields` name who does it. */
export async function endUser(
  { sessions, keys, report }: EndUserParts,
  user: string,
  fields: { readonly by: string },
): Promise<UserEnd> {
  const ended = new Map<string | undefined, number>()
  let revoked = 0
  const revokeKeys = async () => {
    revoked += await keys.revokeOf(user)
  }
  try {
    await revokeKeys()
    for (const listing of sessions)
      for await (const { summary } of listing.endNamed(user)) {
        const provider = summary?.provider
        ended.set(provider, (ended.get(provider) ?? 0) + 1)
      }
    // A session may have created a key before it ended.
    await revokeKeys()
  } finally {
    // Reports what was done, even if the store fails in between.
    if (revoked > 0) report('key_revoked', { ...fields, user, revoked })
    for (const [provider, count] of ended) report('session_ended', { ...fields, user, provider, ended: count })
  }
  return { ended: [...ended.values()].reduce((sum, count) => sum + count, 0), keys: revoked }
}
