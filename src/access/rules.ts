// Which role may see which pages: rules as data, the most specific one first, and nothing that no rule admits.
import { OWN_PATHS, OWN_PREFIX } from '../own-paths.ts'
import { ROLES, type Role, type Rule } from '../settings/config-file.ts'

export interface Rules {
  /** The rule that decides. For applications that cannot tell capitals from small letters, the stricter of both. */
  ruleFor(method: string, path: string, role: Role | undefined): Rule
  /** A rule on trial that would decide instead, if there is one. */
  shadowRuleFor(method: string, path: string): Rule | undefined
}

/** Our own pages are for every signed-in user, whatever the rules say of the application. */
const OWN_RULE: Rule = { path: OWN_PREFIX, roles: ROLES }
const CONSOLE_RULE: Rule = { path: OWN_PATHS.console, roles: ['developer'] }
/** Whatever no other rule covers. */
const LAST_RULE: Rule = { path: '/', roles: ROLES }

export function createRules(given: readonly Rule[]): Rules {
  const sorted = [CONSOLE_RULE, OWN_RULE, ...given].sort((one, other) => specificity(other) - specificity(one))
  const rules = sorted.filter(rule => !rule.shadow)
  const shadows = given.some(rule => rule.shadow)
  const capitals = given.some(rule => rule.path !== rule.path.toLowerCase())
  const foldedRules = rules.map(rule => ({ rule, folded: { ...rule, path: rule.path.toLowerCase() } }))

  function foldedRuleFor(method: string, path: string): Rule {
    return foldedRules.find(({ folded }) => covers(folded, method, path.toLowerCase()))?.rule ?? LAST_RULE
  }

  return {
    ruleFor(method, path, role) {
      const rule = rules.find(rule => covers(rule, method, path)) ?? LAST_RULE
      const folds = capitals || path !== path.toLowerCase()
      return folds && admits(rule, role) ? foldedRuleFor(method, path) : rule
    },
    shadowRuleFor: (method, path) => {
      if (!shadows) return undefined
      const rule = sorted.find(rule => covers(rule, method, path))
      return rule?.shadow ? rule : undefined
    },
  }
}

/** Whether the rule lets this role in; a visitor has none. */
export function admits(rule: Rule, role: Role | undefined): boolean {
  return rule.public === true || (role !== undefined && rule.roles?.includes(role) === true)
}

/** The longer path; of the same path the exact one; of these the one for certain methods. */
function specificity(rule: Rule): number {
  return rule.path.length * 4 + (rule.exact ? 2 : 0) + (rule.methods ? 1 : 0)
}

function covers(rule: Rule, method: string, path: string): boolean {
  const asked = method === 'HEAD' ? 'GET' : method
  if (rule.methods && !rule.methods.includes(asked)) return false
  return rule.exact ? path === rule.path : isWithin(rule.path, path)
}

/** The path itself, or anything below it. */
export function isWithin(prefix: string, path: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}
