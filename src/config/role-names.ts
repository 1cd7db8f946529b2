// Names of roles with a built-in meaning. All others are the operator's.

/** The role that sees the console. */
export const CONSOLE_ROLE = 'developer'
/** The role of a user who matches no row of `roles`. */
export const DEFAULT_ROLE = 'common'
/** Means every role, and so every signed-in user. */
export const ANY_ROLE = '*'
/** The roles that exist without any configuration. */
export const DEFAULT_ROLE_NAMES: readonly string[] = [CONSOLE_ROLE, DEFAULT_ROLE]

export type Role = string

/** The roles that exist where the configuration names none. */
export type DefaultRole = typeof CONSOLE_ROLE | typeof DEFAULT_ROLE
