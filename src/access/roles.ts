// Which role a user has: that of the first row that fits, and `common` if none does.
import type { RoleConfig } from '../settings/config/config-file.ts'
import { notAccepted } from '../settings/json-place.ts'

/** What a rule can look at. */
export interface Who {
  readonly role: string
  readonly username: string
  readonly groups: readonly string[]
}

/** What a role can be given by. */
export interface Known {
  readonly username: string
  readonly groups: readonly string[]
  readonly claims: Readonly<Record<string, unknown>>
}

export const NOBODYS_ROLE = 'common'

/** The specification's rule. */
export const USUAL_ROLES: readonly RoleConfig[] = [{ role: 'developer', username: ['admin'] }]

export function roleOf(known: Known, roles: readonly RoleConfig[]): string {
  return roles.find(row => fits(row, known))?.role ?? NOBODYS_ROLE
}

/** Everything that the row names has to fit. */
function fits({ username, groups, claim }: RoleConfig, known: Known): boolean {
  if (username && !username.includes(known.username)) return false
  if (groups && !groups.some(group => known.groups.includes(group))) return false
  return claim === undefined || notAccepted(known.claims, claim) === undefined
}
