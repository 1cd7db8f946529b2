// Which role may access which pages: rules as data. The most specific rule decides about a path, and a path without a rule is for every
// signed-in user. Applications interpret paths in different ways (ambiguous-paths.ts has an example), so a request is admitted only
// if the rule of every interpretation admits it. In two stages:
//
//   decide('GET', '/files/%2541dmin', user)
//     literal       the rule for the literal path: /files. Does it admit the user? If not, it decides.
//     interpreted   the rules for all other interpretations: /files/admin. Does one not admit the user? Then it decides.
//
// Both results are the same for all users. They are computed once and cached for recent paths.

import type { Rule } from '../config/file.ts'
import { ANY_ROLE, CONSOLE_ROLE } from '../config/role-names.ts'
import { OWN_PATHS, OWN_PREFIX } from '../paths.ts'
import { createLongestPrefix } from '../util/longest-prefix.ts'
import {
  decodedOnce,
  decodedPath,
  type Interpretation,
  interpretationAt,
  interpretationsOf,
  isPlain,
  isPlainRule,
  LENIENT,
  shownPath,
  spellingsOf,
  textsOf,
  withoutKeptEscapes,
} from './ambiguous-paths.ts'
import { type Conditions, conditionsOf } from './conditions.ts'
import { fold } from './fold.ts'
import { createPathCache } from './request-path.ts'
import type { Subject } from './roles.ts'
import {
  buildRuleTree,
  CLOSED_RULE,
  decidingRules,
  follow,
  inOrder,
  LAST_RULE,
  LITERAL,
  type RuleNode,
  rulesBelow,
} from './rule-tree.ts'

export interface Decision {
  readonly rule: Rule
  /** Whether the rules admit the caller, if the conditions are met. */
  readonly isAdmitted: boolean
  /** The interpretation that decided, if it differs from the literal path. */
  readonly interpretation?: string
  /** The conditions of the rules of all interpretations. Only a decision that admits the caller has them. */
  readonly conditions?: readonly Conditions[] | undefined
  /** The rule is for something below the path. */
  readonly isBelow?: true
}

/** Takes paths as received, not decoded. */
export interface Rules {
  /** All rules including our own, each before those that it takes precedence over. */
  readonly inOrder: readonly Rule[]
  /** Whether any rule admits machines. */
  readonly hasBearer: boolean
  /** The rules that admit machines, in the order of the configuration. */
  readonly bearerRules: readonly Rule[]
  /** Whether any rule admits programs with personal keys of users. */
  readonly hasPersonalKeys: boolean
  /** `isTree`: the request acts on everything below the path as well. */
  decide(method: string, path: string, subject: Subject | undefined, isTree?: boolean): Decision
  /** The rule that decides. */
  ruleFor(method: string, path: string, subject: Subject | undefined): Rule
  /** The rules of every interpretation of a path, the rule of the literal path first. */
  rulesFor(method: string, path: string): readonly Rule[]
  /** The rules that decide about what is below a path. */
  rulesBelow(method: string, path: string): readonly Rule[]
  /** Whether two paths lead to the same upstream. */
  areOfOneUpstream(path: string, other: string): boolean
  /** The conditions of the rules of a path. */
  conditionsFor(method: string, path: string): readonly Conditions[]
  /** The decision of a shadow rule, if one decides. */
  shadowDecision(method: string, path: string, subject: Subject | undefined, isTree?: boolean): Decision | undefined
}

/** Our own pages are for every signed-in user, whatever the rules are for the application. */
const OWN_RULE: Rule = { path: OWN_PREFIX, roles: [ANY_ROLE] }
const CONSOLE_RULE: Rule = { path: OWN_PATHS.console, roles: [CONSOLE_ROLE] }

/** `prefixes` are those of the upstreams: a path that the applications of two of them could claim is for no one. */
export function createRules(given: readonly Rule[], prefixes: readonly string[] = []): Rules {
  const prefixOf = createPrefixOf(prefixes)
  const otherUpstreams = createOtherUpstreams(prefixOf)
  const effective = given.filter(({ shadow }) => !shadow)
  const { decide, ...lookups } = createDecide(effective, otherUpstreams)
  const decideWithShadow = given.some(({ shadow }) => shadow) ? createDecide(given, otherUpstreams).decide : undefined
  return {
    inOrder: inOrder(buildRuleTree([CONSOLE_RULE, OWN_RULE, ...given], LITERAL).root),
    hasBearer: given.some(({ bearer, shadow }) => bearer && !shadow),
    bearerRules: effective.filter(({ bearer }) => bearer),
    hasPersonalKeys: given.some(({ keys, shadow }) => keys === 'personal' && !shadow),
    decide,
    ...lookups,
    ruleFor: (method, path, subject) => decide(method, path, subject).rule,
    areOfOneUpstream: (path, other) => prefixOf(decodedOnce(path)) === prefixOf(decodedOnce(other)),
    shadowDecision(method, path, subject, isTree) {
      const decision = decideWithShadow?.(method, path, subject, isTree)
      return decision?.rule.shadow ? decision : undefined
    },
  }
}

type PrefixOf = (path: string) => string | undefined

/** The prefix of the upstream that a decoded path leads to, or that of our own pages. */
function createPrefixOf(prefixes: readonly string[]): PrefixOf {
  const longestPrefix = createLongestPrefix(new Map([OWN_PREFIX, ...prefixes].map(prefix => [fold(prefix), prefix])))
  // Some spellings have lost their capitals, so all comparisons ignore case.
  return path => longestPrefix(fold(path))
}

type OtherUpstreams = (decoded: string, spellings: readonly string[]) => readonly Interpretation[]

const NONE: readonly Interpretation[] = []

/** The interpretations of a path that lead to another upstream than the literal path, or to our own pages. */
function createOtherUpstreams(prefixOf: PrefixOf): OtherUpstreams {
  return (decoded, spellings) => {
    if (spellings.length === 1 && !/[;?#]|\/\//.test(decoded)) return NONE
    const path = withoutKeptEscapes(decoded)
    const chosen = prefixOf(path)
    const routed = spellings.flatMap(spelling => [...routedPaths(withoutKeptEscapes(spelling))])
    const others = routed.filter(other => prefixOf(other) !== chosen)
    // Our own pages have only one spelling.
    if (chosen === OWN_PREFIX && prefixOf(decoded) !== chosen) others.unshift(path)
    return others.map(closed)
  }
}

/** An interpretation that rules of the configuration must not decide about. */
function closed(path: string): Interpretation {
  return { path, rules: [CLOSED_RULE] }
}

/** The paths by which a server may choose: unchanged, without parameters, or cut, and each of them without empty segments. */
function routedPaths(spelling: string): ReadonlySet<string> {
  const paths = [spelling, spelling.replace(/;[^/]*/g, ''), spelling.replace(/[;?#].*$/s, '')]
  return new Set(paths.flatMap(path => [path, path.replace(/\/{2,}/g, '/')]))
}

/** The results for a path and a method, valid for all callers. */
interface PathVerdict {
  readonly method: string
  /** The decision if the rule for the literal path does not admit the caller. */
  readonly refused: Decision
  /** Computed only when that rule admits a caller: otherwise a visitor's request for a new path would take three times as long. */
  interpreted?: InterpretedRules
  /** The rules for what is below the path, computed when a request acts on it. */
  below?: readonly Rule[]
}

interface OtherRule {
  readonly rule: Rule
  readonly interpretation: string
}

interface InterpretedRules {
  /** The rules of all interpretations, the rule of the literal path first. */
  readonly rules: readonly Rule[]
  /** All rules but the first, each with the first interpretation that leads to it. */
  readonly others: readonly OtherRule[]
  /** The decision if all rules admit the caller. */
  readonly admitted: Decision
}

const MAX_CACHED_METHODS = 4
const MAX_METHOD_LENGTH = 32

function createDecide(
  given: readonly Rule[],
  otherUpstreams: OtherUpstreams,
): Pick<Rules, 'decide' | 'rulesFor' | 'rulesBelow' | 'conditionsFor'> {
  const rules = [CONSOLE_RULE, OWN_RULE, ...given]
  const literal = buildRuleTree(rules, LITERAL)
  const lenient = buildRuleTree(rules, LENIENT)
  const rulesArePlain = given.every(isPlainRule)
  const conditions = new Map(given.map(rule => [rule, conditionsOf(rule)]))
  /** Keyed by path, with a few methods each. */
  const verdicts = createPathCache<readonly PathVerdict[]>()

  function decide(method: string, path: string, subject: Subject | undefined, isTree = false): Decision {
    const verdict = verdictFor(method, path)
    if (!admits(verdict.refused.rule, subject)) return verdict.refused
    const { others, admitted } = interpretedFor(verdict, path)
    for (const { rule, interpretation } of others)
      if (!admits(rule, subject)) return { rule, isAdmitted: false, interpretation }
    return isTree ? decideBelow(belowFor(verdict, path), subject, admitted) : admitted
  }

  function decideBelow(below: readonly Rule[], subject: Subject | undefined, admitted: Decision): Decision {
    const stricter = below.find(rule => !admits(rule, subject))
    if (stricter) return { rule: stricter, isAdmitted: false, isBelow: true }
    const all = new Set([...(admitted.conditions ?? []), ...conditionsOfAll(below)])
    return all.size === 0 ? admitted : { ...admitted, conditions: [...all] }
  }

  function verdictFor(method: string, path: string): PathVerdict {
    const known = verdicts.get(path)
    const same = known?.find(verdict => verdict.method === method)
    if (same) return same
    const verdict: PathVerdict = { method, refused: { rule: literalRule(method, path), isAdmitted: false } }
    if (method.length <= MAX_METHOD_LENGTH)
      verdicts.set(path, [verdict, ...(known ?? []).slice(0, MAX_CACHED_METHODS - 1)])
    return verdict
  }

  function interpretedFor(verdict: PathVerdict, path: string): InterpretedRules {
    verdict.interpreted ??= interpret(verdict, path)
    return verdict.interpreted
  }

  function belowFor(verdict: PathVerdict, path: string): readonly Rule[] {
    verdict.below ??= findBelow(verdict, path)
    return verdict.below
  }

  function literalRule(method: string, path: string): Rule {
    const decoded = decodedPath(path)
    const node = follow(literal, decoded)
    return decidingRules(node, method, decoded === node.path)[0] ?? LAST_RULE
  }

  function interpret({ method, refused: { rule } }: PathVerdict, path: string): InterpretedRules {
    const rules = [rule]
    const others: OtherRule[] = []
    for (const { rules: deciding, path: decoded } of interpretations(rule, method, path))
      for (const other of deciding)
        if (!rules.includes(other)) {
          rules.push(other)
          others.push({ rule: other, interpretation: shownPath(decoded) })
        }
    const all = conditionsOfAll(rules)
    const admitted: Decision = { rule, isAdmitted: true, ...(all.length > 0 && { conditions: all }) }
    return { rules, others, admitted }
  }

  function interpretations(rule: Rule, method: string, path: string): readonly Interpretation[] {
    if (rulesArePlain && isPlain(path)) return NONE
    const node = lenient.nodeOf(rule)
    if (rule.exact) return [interpretationAt(node, method)]
    const decoded = decodedPath(path)
    // The part of the path that the rule names has no other interpretation, because the operator knows the application.
    const rest = rule.path === '/' ? decoded : decoded.slice(rule.path.length)
    const texts = textsOf(decoded)
    const restSpellings = rest === decoded ? texts?.spellings : spellingsOf(rest)
    // Such a path is refused before the rules are asked.
    if (!texts || !restSpellings) return [closed(decoded)]
    const { spellings, withoutSession } = texts
    return [
      ...interpretationsOf(node, restSpellings, method),
      ...interpretationsOf(lenient.root, withoutSession, method),
      ...otherUpstreams(decoded, [...spellings, ...withoutSession]),
    ]
  }

  function findBelow({ method, refused: { rule } }: PathVerdict, path: string): readonly Rule[] {
    const decoded = decodedPath(path)
    const named = follow(literal, decoded)
    const nodes = new Set<RuleNode>()
    for (const { node } of interpretations(rule, method, path)) if (node) nodes.add(node)
    if (named.path === decoded) nodes.add(named)
    const found = new Set(decidingRules(named, method, false))
    for (const node of nodes) for (const rule of rulesBelow(node, method)) found.add(rule)
    // Our own pages do not belong to the application.
    return [...found].filter(rule => rule !== CONSOLE_RULE && rule !== OWN_RULE)
  }

  function conditionsOfAll(rules: readonly Rule[]): readonly Conditions[] {
    return rules.flatMap(rule => conditions.get(rule) ?? [])
  }

  return {
    decide,
    rulesFor: (method, path) => interpretedFor(verdictFor(method, path), path).rules,
    rulesBelow: (method, path) => belowFor(verdictFor(method, path), path),
    conditionsFor: (method, path) => interpretedFor(verdictFor(method, path), path).admitted.conditions ?? [],
  }
}

/** Whether the rule is not from the configuration. */
export function isBuiltIn(rule: Rule): boolean {
  return rule === CONSOLE_RULE || rule === OWN_RULE || rule === LAST_RULE || isClosed(rule)
}

/** The rule of a path that leads to several upstreams. */
export function isClosed(rule: Rule): boolean {
  return rule === CLOSED_RULE
}

/** Whether the rule admits a caller, if its conditions are met; `undefined` is a visitor. */
export function admits(rule: Rule, subject: Subject | undefined): boolean {
  const { public: everybody, roles, groups, users } = rule
  if (everybody) return true
  if (
    !subject ||
    (subject.isBearer && !admitsToken(rule, subject)) ||
    (subject.keyKind && !admitsKey(rule, subject.keyKind))
  )
    return false
  return (
    roles?.includes(subject.role) === true ||
    roles?.includes(ANY_ROLE) === true ||
    groups?.some(group => subject.groups.includes(group)) === true ||
    users?.includes(subject.username) === true
  )
}

function admitsToken(rule: Rule, subject: Subject): boolean {
  return rule.bearer === true && !lacksScopes(rule, subject)
}

function admitsKey({ keys }: Rule, kind: 'machine' | 'personal'): boolean {
  return keys === 'personal' || (keys === true && kind === 'machine')
}

/** Whether the rule requires a scope that the token of this machine does not have. */
export function lacksScopes({ scopes }: Rule, subject: Subject): boolean {
  return scopes?.every(scope => subject.scopes?.includes(scope)) === false
}
