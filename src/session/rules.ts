// Which role may see which pages: rules as data, the most specific one first, and nothing that no rule admits.
import type { Role, Rule } from '../config-file.ts'

export const DEFAULT_RULES: readonly Rule[] = [
  { path: '/_menshen/console', roles: ['developer'] },
  { path: '/', roles: ['developer', 'common'] },
]

export function allows(rules: readonly Rule[], role: Role, path: string): boolean {
  return ruleFor(rules, path)?.roles.includes(role) ?? false
}

function ruleFor(rules: readonly Rule[], path: string): Rule | undefined {
  return rules
    .filter(rule => covers(rule.path, path))
    .reduce<Rule | undefined>((best, rule) => (best && best.path.length >= rule.path.length ? best : rule), undefined)
}

function covers(prefix: string, path: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}
