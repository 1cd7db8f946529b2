// The role of a user: that of the first row that fits, or `common` if none does.
import type { RoleConfig } from '../config/file.ts'
import { CONSOLE_ROLE, DEFAULT_ROLE, DEFAULT_ROLE_NAMES } from '../config/role-names.ts'
import { notAmong } from '../util/json-path.ts'

/** The properties of a caller that a rule can name; names are those of createScopedName. */
export interface Subject {
  readonly role: string
  readonly username: string
  readonly groups: readonly string[]
  /** A machine with a token of the provider, not a browser with a session. */
  readonly isBearer?: true
  /** A program with a key, and whose key it is. */
  readonly keyKind?: 'machine' | 'personal'
  /** The scopes of a machine's token. */
  readonly scopes?: readonly string[]
}

/** What a role can depend on. */
export interface RoleInput {
  /** With several providers, the one that all of this comes from. */
  readonly provider?: string | undefined
  readonly username: string
  readonly groups: readonly string[]
  /** Read only if a row names a claim, because they may have to be opened. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Whether there may have been a claim at this path that was dropped from `claims`. */
  isLost?(place: string): boolean
}

/** Specification 6.3. */
export const DEFAULT_ROLES: readonly RoleConfig[] = [{ role: CONSOLE_ROLE, username: ['admin'] }]

/**
 * A row whose claim was dropped gives no role, and neither does any row after it, because the undecided row may be the one that
 * gives less.
 */
export function roleOf(known: RoleInput, roles: readonly RoleConfig[]): string {
  const row = roles.find(row => fits(row, known))
  return row && !isUndecided(row, known) ? row.role : DEFAULT_ROLE
}

/** A row without a provider applies to the users of the main one, because names mean nothing beyond their provider. */
export function rolesFor(roles: readonly RoleConfig[], [main]: readonly string[]): readonly RoleConfig[] {
  return main === undefined ? roles : roles.map(row => ({ provider: [main], ...row }))
}

/** All roles that exist. */
export function roleNamesIn(roles: readonly RoleConfig[]): string[] {
  return [...new Set([...DEFAULT_ROLE_NAMES, ...roles.map(row => row.role)])]
}

/** Whether everything that the row names fits, or could if it is undecided. A row that names nothing matches no user. */
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
