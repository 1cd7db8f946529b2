// Somebody as rules and applications know them: nobody of another provider can be taken for them.
import type { Who } from '../access/roles.ts'
import type { ScopedName } from '../access/scoped-name.ts'
import type { Session } from './session-record.ts'

export interface Identity extends Who {
  readonly sub: string
  /** Which of several providers. */
  readonly provider?: string
}

/** What of a session says who it is. */
export type Claimed = Pick<Session, 'userInfo' | 'userRole' | 'groups' | 'provider'>

const NO_GROUPS: readonly string[] = []

export function identityOf(claimed: Claimed, scoped: ScopedName): Identity {
  const { userInfo, userRole, groups = NO_GROUPS, provider } = claimed
  return {
    role: userRole,
    username: scoped(provider, userInfo.username),
    groups: groups.length === 0 ? NO_GROUPS : groups.map(group => scoped(provider, group)),
    sub: scoped(provider, userInfo.sub),
    ...(provider === undefined ? {} : { provider }),
  }
}
