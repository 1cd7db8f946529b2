// The names of roles that mean something to us. All others are the operator's.

/** The role that sees the console. */
export const CONSOLE_ROLE = 'developer'
/** Of whoever no row of `roles` fits. */
export const NOBODYS_ROLE = 'common'
/** Stands for every role, and so for every signed-in user. */
export const ANY_ROLE = '*'
/** Those that are there without a word in the configuration. */
export const USUAL_ROLE_NAMES: readonly string[] = [CONSOLE_ROLE, NOBODYS_ROLE]
