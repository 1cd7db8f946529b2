// Which role a user has: that of the first row that fits, and `common` if none does.
import type { RoleConfig } from '../config/file.ts'
import { CONSOLE_ROLE, DEFAULT_ROLE, DEFAULT_ROLE_NAMES } from '../config/role-names.ts'
import { notAmong } from '../util/json-path.ts'

/** What a rule can look at; names as createScopedName writes them. */
export interface Subject {
  readonly role: string
  readonly username: string
  readonly groups: readonly string[]
  /** A machine with a token of the provider, not a browser with a session. */
  readonly isBearer?: true
  /** A program with a key, and whose key it is. */
  readonly keyKind?: 'machine' | 'personal'
  /** What the token of a machine is good for. */
  readonly scopes?: readonly string[]
}

/** What a role can be given by. */
export interface RoleInput {
  /** Which of several providers says all this. */
  readonly provider?: string | undefined
  readonly username: string
  readonly groups: readonly string[]
  /** Asked for only where a row is by a claim: they may have to be opened. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Whether something may have been said at a place that `claims` does not have any more. */
  isLost?(place: string): boolean
}

/** Specification 6.3. */
export const DEFAULT_ROLES: readonly RoleConfig[] = [{ role: CONSOLE_ROLE, username: ['admin'] }]

/**
 * A row with a claim that was dropped matches no user, and neither does a row after it: the first row that fits may be the one that
 * gives less.
 */
export function roleOf(known: RoleInput, roles: readonly RoleConfig[]): string {
  const row = roles.find(row => fits(row, known))
  return row && !isUndecided(row, known) ? row.role : DEFAULT_ROLE
}

/** A row that names no provider is about the users of the main one: names mean nothing beyond their provider. */
export function rolesFor(roles: readonly RoleConfig[], [main]: readonly string[]): readonly RoleConfig[] {
  return main === undefined ? roles : roles.map(row => ({ provider: [main], ...row }))
}

/** All roles that there are. */
export function roleNamesIn(roles: readonly RoleConfig[]): string[] {
  return [...new Set([...DEFAULT_ROLE_NAMES, ...roles.map(row => row.role)])]
}

/** Everything that the row names has to fit; what is undecided could. A row that names nothing matches no user. */
function fits(row: RoleConfig, known: RoleInput): boolean {
  const { provider, username, groups, claim } = row
  if (provider && known.provider !== undefined && !provider.includes(known.provider)) return false
  if (username && !username.includes(known.username)) return false
  if (groups && !groups.some(group => known.groups.includes(group))) return false
  if (claim === undefined) return (username ?? groups) !== undefined
  if (Object.keys(claim).length === 0) return false
  return isUndecided(row, known) || notAmong(known.claims, claim) === undefined
}

function isUndecided({ claim }: RoleConfig, known: RoleInput): boolean {
  return claim !== undefined && known.isLost !== undefined && Object.keys(claim).some(place => known.isLost?.(place))
}
