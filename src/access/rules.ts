// Which role may see which pages: rules as data, the most specific one first, and nothing that no rule admits. Applications
// read paths in more ways than one, so a request is admitted only if the rule of every reading admits it.
import { OWN_PATHS, OWN_PREFIX } from '../own-paths.ts'
import type { Rule } from '../settings/config/config-file.ts'
import { ANY_ROLE, CONSOLE_ROLE } from '../settings/config/role-names.ts'
import {
  isPlain,
  isPlainRule,
  LENIENTLY,
  pathsWithoutSession,
  type Reading,
  readingAt,
  readingsOf,
} from './readings.ts'
import { createRecent } from './recent.ts'
import type { Who } from './roles.ts'
import { decidingRules, follow, growTree, inOrder, LAST_RULE, LITERALLY, type RuleNode } from './rule-tree.ts'

export interface Decision {
  readonly rule: Rule
  /** The path as an application could read it, if it was not the path as it is that decided. */
  readonly reading?: string
}

export interface Rules {
  /** All of them with our own, each before those that it takes precedence over. */
  readonly inOrder: readonly Rule[]
  /** Whether any rule lets machines in. */
  readonly hasBearer: boolean
  decide(method: string, path: string, who: Who | undefined): Decision
  /** The rule that decides. */
  ruleFor(method: string, path: string, who: Who | undefined): Rule
  /** The rules of every reading of a path, that of the path as it is first. */
  rulesFor(method: string, path: string): readonly Rule[]
  /** A rule on trial that would decide instead, if there is one. */
  shadowRuleFor(method: string, path: string, who: Who | undefined): Rule | undefined
}

/** Our own pages are for every signed-in user, whatever the rules say of the application. */
const OWN_RULE: Rule = { path: OWN_PREFIX, roles: [ANY_ROLE] }
const CONSOLE_RULE: Rule = { path: OWN_PATHS.console, roles: [CONSOLE_ROLE] }

export function createRules(given: readonly Rule[]): Rules {
  const { decide, rulesFor } = createDecide(given.filter(({ shadow }) => !shadow))
  const decideOnTrial = given.some(({ shadow }) => shadow) ? createDecide(given).decide : undefined
  return {
    inOrder: inOrder(growTree([CONSOLE_RULE, OWN_RULE, ...given], LITERALLY).root),
    hasBearer: given.some(({ bearer, shadow }) => bearer && !shadow),
    decide,
    ruleFor: (method, path, who) => decide(method, path, who).rule,
    rulesFor,
    shadowRuleFor(method, path, who) {
      const rule = decideOnTrial?.(method, path, who).rule
      return rule?.shadow ? rule : undefined
    },
  }
}

/** Which rules decide about a path and a method, whoever asks for it. */
interface Deciding {
  readonly method: string
  /** Of the rule for the path as it is. */
  readonly decision: Decision
  /** What the other readings of the path lead to as well; looked for only if somebody is admitted. */
  others?: readonly Rule[]
}

/** Most requests ask for what was asked for a moment ago. */
const MOST_REMEMBERED = 1000
const MOST_METHODS = 4
/** Nobody can fill the memory with what is no address of any page. */
const LONGEST_REMEMBERED = 256

function createDecide(given: readonly Rule[]): Pick<Rules, 'decide' | 'rulesFor'> {
  const rules = [CONSOLE_RULE, OWN_RULE, ...given]
  const literal = growTree(rules, LITERALLY)
  const lenient = growTree(rules, LENIENTLY)
  const rulesArePlain = given.every(isPlainRule)

  function literalRule(method: string, path: string): Rule {
    const node = follow(literal, path)
    return decidingRules(node, method, path === node.path)[0] ?? LAST_RULE
  }

  function readings(rule: Rule, method: string, path: string): Iterable<Reading> {
    if (rulesArePlain && isPlain(path)) return []
    // What the rule names as it was asked for, nobody reads differently: the operator knows the application.
    const rest = rule.path === '/' ? path : path.slice(rule.path.length)
    const node = lenient.nodeOf(rule)
    return rule.exact ? [readingAt(node, method)] : readingsFrom(node, rest, method, path)
  }

  function* readingsFrom(node: RuleNode, rest: string, method: string, path: string): Generator<Reading> {
    yield* readingsOf(node, rest, method)
    for (const other of pathsWithoutSession(path)) yield* readingsOf(lenient.root, other, method)
  }

  /** By path, for a few methods each. */
  const remembered = createRecent<Deciding[]>(MOST_REMEMBERED)

  function decidingFor(method: string, path: string): Deciding {
    const known = remembered.get(path)
    const same = known?.find(deciding => deciding.method === method)
    if (same) return same
    const deciding: Deciding = { method, decision: { rule: literalRule(method, path) } }
    if (method.length + path.length <= LONGEST_REMEMBERED)
      remembered.set(path, [deciding, ...(known ?? []).slice(0, MOST_METHODS - 1)])
    return deciding
  }

  function otherRules(rule: Rule, method: string, path: string): readonly Rule[] {
    const others = new Set([...readings(rule, method, path)].flatMap(({ rules }) => rules))
    others.delete(rule)
    return [...others]
  }

  function rulesFor(method: string, path: string): readonly Rule[] {
    const deciding = decidingFor(method, path)
    const { rule } = deciding.decision
    deciding.others ??= otherRules(rule, method, path)
    return [rule, ...deciding.others]
  }

  function decide(method: string, path: string, who: Who | undefined): Decision {
    const deciding = decidingFor(method, path)
    const { decision } = deciding
    const { rule } = decision
    if (!admits(rule, who)) return decision
    deciding.others ??= otherRules(rule, method, path)
    if (deciding.others.length === 0 || deciding.others.every(other => admits(other, who))) return decision
    for (const reading of readings(rule, method, path)) {
      const stricter = reading.rules.find(other => !admits(other, who))
      if (stricter) return { rule: stricter, reading: reading.path() }
    }
    return decision
  }

  return { decide, rulesFor }
}

/** Nobody wrote it into a configuration. */
export function isBuiltIn(rule: Rule): boolean {
  return rule === CONSOLE_RULE || rule === OWN_RULE || rule === LAST_RULE
}

/** Whether the rule lets somebody in; a visitor is nobody. */
export function admits(rule: Rule, who: Who | undefined): boolean {
  const { public: everybody, roles, groups, users } = rule
  if (everybody) return true
  if (!who || (who.isBearer && !admitsToken(rule, who))) return false
  return (
    roles?.includes(who.role) === true ||
    roles?.includes(ANY_ROLE) === true ||
    groups?.some(group => who.groups.includes(group)) === true ||
    users?.includes(who.username) === true
  )
}

function admitsToken(rule: Rule, who: Who): boolean {
  return rule.bearer === true && !lacksScopes(rule, who)
}

/** Whether the rule wants a scope that the token of this machine does not have. */
export function lacksScopes({ scopes }: Rule, who: Who): boolean {
  return scopes?.every(scope => who.scopes?.includes(scope)) === false
}
