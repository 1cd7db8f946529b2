// Which role may see which pages: rules as data, the most specific one first, and nothing that no rule admits. Applications
// interpret paths in different ways, so a request is admitted only if the rule of every interpretation admits it.

import { ANY_ROLE, CONSOLE_ROLE, type Rule } from '../config/config-file.ts'
import { OWN_PATHS, OWN_PREFIX } from '../paths.ts'
import { createLongestPrefix } from '../util/longest-prefix.ts'
import { createRecent } from '../util/recent.ts'
import { type Conditions, conditionsOf } from './conditions.ts'
import {
  type Interpretation,
  interpretationAt,
  interpretationsOf,
  isPlain,
  isPlainRule,
  LENIENT_NAMING,
  pathsWithoutSession,
} from './interpretations.ts'
import type { Subject } from './roles.ts'
import {
  CLOSED_RULE,
  decidingRules,
  follow,
  growTree,
  inOrder,
  LAST_RULE,
  LITERALLY,
  type RuleNode,
  rulesBelow,
} from './rule-tree.ts'
import {
  allSpellings,
  decodedOnce,
  decodedPath,
  fold,
  shownPath,
  spellingsOf,
  withoutKeptEscapes,
} from './spellings.ts'

export interface Decision {
  readonly rule: Rule
  /** The interpretation that decided, if it was another one than the path as it is. */
  readonly interpretation?: string
  /** Of the rules of all interpretations, if the rule admits and any of them has some. They have to be met, too. */
  readonly conditions?: readonly Conditions[] | undefined
  /** The rule is for something below the path. */
  readonly isBelow?: true
}

/** Paths are as they came, not decoded. */
export interface Rules {
  /** All of them with our own, each before those that it takes precedence over. */
  readonly inOrder: readonly Rule[]
  /** Whether any rule lets machines in. */
  readonly hasBearer: boolean
  /** Those that do, in the order of the configuration. */
  readonly bearerRules: readonly Rule[]
  /** Whether any rule lets programs in by their users' own keys. */
  readonly hasPersonalKeys: boolean
  /** `isTree`: the request acts on everything below the path as well. */
  decide(method: string, path: string, who: Subject | undefined, isTree?: boolean): Decision
  /** The rule that decides. */
  ruleFor(method: string, path: string, who: Subject | undefined): Rule
  /** The rules of every interpretation of a path, that of the path as it is first. */
  rulesFor(method: string, path: string): readonly Rule[]
  /** The rules that decide about what is below a path. */
  rulesBelow(method: string, path: string): readonly Rule[]
  /** Whether two paths lead to the same upstream. */
  areOfOneUpstream(path: string, other: string): boolean
  /** The conditions of the rules of a path. */
  conditionsFor(method: string, path: string): readonly Conditions[]
  /** What a shadow rule would decide instead, if there is one. */
  shadowDecision(method: string, path: string, who: Subject | undefined, isTree?: boolean): Decision | undefined
}

/** Our own pages are for every signed-in user, whatever the rules say of the application. */
const OWN_RULE: Rule = { path: OWN_PREFIX, roles: [ANY_ROLE] }
const CONSOLE_RULE: Rule = { path: OWN_PATHS.console, roles: [CONSOLE_ROLE] }

/** `prefixes` are those of the upstreams: a path that applications of two of them could claim is for no one. */
export function createRules(given: readonly Rule[], prefixes: readonly string[] = []): Rules {
  const prefixOf = createPrefixOf(prefixes)
  const otherUpstreams = createOtherUpstreams(prefixOf)
  const effective = given.filter(({ shadow }) => !shadow)
  const { decide, ...deciding } = createDecide(effective, otherUpstreams)
  const decideWithShadow = given.some(({ shadow }) => shadow) ? createDecide(given, otherUpstreams).decide : undefined
  return {
    inOrder: inOrder(growTree([CONSOLE_RULE, OWN_RULE, ...given], LITERALLY).root),
    hasBearer: given.some(({ bearer, shadow }) => bearer && !shadow),
    bearerRules: effective.filter(({ bearer }) => bearer),
    hasPersonalKeys: given.some(({ keys, shadow }) => keys === 'personal' && !shadow),
    decide,
    ...deciding,
    ruleFor: (method, path, who) => decide(method, path, who).rule,
    areOfOneUpstream: (path, other) => prefixOf(decodedOnce(path)) === prefixOf(decodedOnce(other)),
    shadowDecision(method, path, who, isTree) {
      const decision = decideWithShadow?.(method, path, who, isTree)
      return decision?.rule.shadow ? decision : undefined
    },
  }
}

type PrefixOf = (path: string) => string | undefined

/** The prefix of the upstream that a decoded path leads to, or that of our own pages. */
function createPrefixOf(prefixes: readonly string[]): PrefixOf {
  const longestPrefix = createLongestPrefix(new Map([OWN_PREFIX, ...prefixes].map(prefix => [fold(prefix), prefix])))
  // Some spellings have no capitals any more, so they count for none.
  return path => longestPrefix(fold(path))
}

type OtherUpstreams = (decoded: string, spellings: readonly string[]) => Iterable<Interpretation>

/** The interpretations of a path that lead to another upstream than the path as it is, or to our own pages. */
function createOtherUpstreams(prefixOf: PrefixOf): OtherUpstreams {
  return function* (decoded, spellings) {
    if (spellings.length === 1 && !/[;?#]|\/\//.test(decoded)) return
    const path = withoutKeptEscapes(decoded)
    const chosen = prefixOf(path)
    // Our own pages have one spelling.
    if (chosen === OWN_PREFIX && prefixOf(decoded) !== chosen) yield { path: () => path, rules: [CLOSED_RULE] }
    for (const spelling of spellings)
      for (const routed of routedPaths(withoutKeptEscapes(spelling)))
        if (prefixOf(routed) !== chosen) yield { path: () => shownPath(routed), rules: [CLOSED_RULE] }
  }
}

/** The path by which a server chooses: as it is, without its parameters, or cut; and without empty segments. */
function routedPaths(spelling: string): ReadonlySet<string> {
  const paths = [spelling, spelling.replace(/;[^/]*/g, ''), spelling.replace(/[;?#].*$/s, '')]
  return new Set(paths.flatMap(path => [path, path.replace(/\/{2,}/g, '/')]))
}

/** Which rules decide about a path and a method, for all users. */
interface Deciding {
  readonly method: string
  /** Of the rule for the path as it is; with its conditions once `others` is there. */
  decision: Decision
  /** The rules of the other interpretations; computed only if the rule for the path as it is admits a user. */
  others?: readonly Rule[]
  /** The first interpretation of each of them. */
  readings?: ReadonlyMap<Rule, string>
  /** The rules for what is below the path, computed when a request acts on that. */
  below?: readonly Rule[]
}

/** Most requests ask for a recent path. */
const MOST_REMEMBERED = 2000
const MOST_METHODS = 4
const LONGEST_METHOD = 32
/** Longer paths are not the addresses of pages. A client that repeats one costs little: a few of them are remembered, too. */
const LONGEST_PAGE = 256
const MOST_LONG = 64

function createDecide(
  given: readonly Rule[],
  otherUpstreams: OtherUpstreams,
): Pick<Rules, 'decide' | 'rulesFor' | 'rulesBelow' | 'conditionsFor'> {
  const rules = [CONSOLE_RULE, OWN_RULE, ...given]
  const literal = growTree(rules, LITERALLY)
  const lenient = growTree(rules, LENIENT_NAMING)
  const rulesArePlain = given.every(isPlainRule)
  const conditions = new Map(given.map(rule => [rule, conditionsOf(rule)]))

  function literalRule(method: string, path: string): Rule {
    const decoded = decodedPath(path)
    const node = follow(literal, decoded)
    return decidingRules(node, method, decoded === node.path)[0] ?? LAST_RULE
  }

  function interpretations(rule: Rule, method: string, path: string): Iterable<Interpretation> {
    if (rulesArePlain && isPlain(path)) return []
    const decoded = decodedPath(path)
    // The part of the path that the rule names has no other interpretation: the operator knows the application.
    const rest = rule.path === '/' ? decoded : decoded.slice(rule.path.length)
    const node = lenient.nodeOf(rule)
    return rule.exact ? [interpretationAt(node, method)] : interpretationsFrom(node, rest, method, decoded)
  }

  function* interpretationsFrom(
    node: RuleNode,
    rest: string,
    method: string,
    decoded: string,
  ): Generator<Interpretation> {
    const spellings = spellingsOf(decoded)
    const ofRest = rest === decoded ? spellings : spellingsOf(rest)
    const others = spellings && allSpellings(pathsWithoutSession(spellings))
    // Such a path is refused before the rules are asked.
    if (!spellings || !ofRest || !others) return yield { path: () => shownPath(decoded), rules: [CLOSED_RULE] }
    yield* interpretationsOf(node, ofRest, method)
    yield* interpretationsOf(lenient.root, others, method)
    yield* otherUpstreams(decoded, others.length === 0 ? spellings : [...spellings, ...others])
  }

  /** By path, for a few methods each. */
  const pages = createRecent<Deciding[]>(MOST_REMEMBERED)
  const longPaths = createRecent<Deciding[]>(MOST_LONG)

  function decidingFor(method: string, path: string): Deciding {
    const remembered = path.length > LONGEST_PAGE ? longPaths : pages
    const known = remembered.get(path)
    const same = known?.find(deciding => deciding.method === method)
    if (same) return same
    const deciding: Deciding = { method, decision: { rule: literalRule(method, path) } }
    if (method.length <= LONGEST_METHOD) remembered.set(path, [deciding, ...(known ?? []).slice(0, MOST_METHODS - 1)])
    return deciding
  }

  /** Each with its first interpretation, in their order. */
  function otherRules(rule: Rule, method: string, path: string): ReadonlyMap<Rule, string> {
    const others = new Map<Rule, string>()
    for (const interpretation of interpretations(rule, method, path))
      for (const other of interpretation.rules)
        if (other !== rule && !others.has(other)) others.set(other, interpretation.path())
    return others
  }

  function othersOf(deciding: Deciding, method: string, path: string): readonly Rule[] {
    if (deciding.others) return deciding.others
    const { rule } = deciding.decision
    const readings = otherRules(rule, method, path)
    const others = [...readings.keys()]
    const all = [rule, ...others].flatMap(rule => conditions.get(rule) ?? [])
    if (all.length > 0) deciding.decision = { rule, conditions: all }
    deciding.others = others
    deciding.readings = readings
    return others
  }

  function rulesFor(method: string, path: string): readonly Rule[] {
    const deciding = decidingFor(method, path)
    return [deciding.decision.rule, ...othersOf(deciding, method, path)]
  }

  function belowOf(method: string, path: string): readonly Rule[] {
    const deciding = decidingFor(method, path)
    deciding.below ??= findBelow(deciding.decision.rule, method, path)
    return deciding.below
  }

  function findBelow(rule: Rule, method: string, path: string): readonly Rule[] {
    const decoded = decodedPath(path)
    const named = follow(literal, decoded)
    const nodes = new Set([...interpretations(rule, method, path)].flatMap(({ node = [] }) => node))
    if (named.path === decoded) nodes.add(named)
    const found = new Set(decidingRules(named, method, false))
    for (const node of nodes) for (const rule of rulesBelow(node, method)) found.add(rule)
    // Our own pages are not the application's.
    return [...found].filter(rule => rule !== CONSOLE_RULE && rule !== OWN_RULE)
  }

  function decide(method: string, path: string, who: Subject | undefined, isTree = false): Decision {
    const decision = decidePath(method, path, who)
    return isTree && admits(decision.rule, who) ? decideBelow(method, path, who, decision) : decision
  }

  function decideBelow(method: string, path: string, who: Subject | undefined, decision: Decision): Decision {
    const below = belowOf(method, path)
    const stricter = below.find(rule => !admits(rule, who))
    if (stricter) return { rule: stricter, isBelow: true }
    const all = new Set([...(decision.conditions ?? []), ...below.flatMap(rule => conditions.get(rule) ?? [])])
    return all.size === 0 ? decision : { ...decision, conditions: [...all] }
  }

  function decidePath(method: string, path: string, who: Subject | undefined): Decision {
    const deciding = decidingFor(method, path)
    const { rule } = deciding.decision
    if (!admits(rule, who)) return deciding.decision
    const others = othersOf(deciding, method, path)
    const { decision } = deciding
    if (others.length === 0 || others.every(other => admits(other, who))) return decision
    const stricter = others.find(other => !admits(other, who)) ?? rule
    return { rule: stricter, interpretation: deciding.readings?.get(stricter) ?? path }
  }

  function conditionsFor(method: string, path: string): readonly Conditions[] {
    const deciding = decidingFor(method, path)
    othersOf(deciding, method, path)
    return deciding.decision.conditions ?? []
  }

  return { decide, rulesFor, rulesBelow: belowOf, conditionsFor }
}

/** It is not in the configuration. */
export function isBuiltIn(rule: Rule): boolean {
  return rule === CONSOLE_RULE || rule === OWN_RULE || rule === LAST_RULE || isClosed(rule)
}

/** The rule of a path that leads to several upstreams. */
export function isClosed(rule: Rule): boolean {
  return rule === CLOSED_RULE
}

/** Whether the rule lets somebody in, if its conditions are met; a visitor is nobody. */
export function admits(rule: Rule, who: Subject | undefined): boolean {
  const { public: everybody, roles, groups, users } = rule
  if (everybody) return true
  if (!who || (who.isBearer && !admitsToken(rule, who)) || (who.keyKind && !admitsKey(rule, who.keyKind))) return false
  return (
    roles?.includes(who.role) === true ||
    roles?.includes(ANY_ROLE) === true ||
    groups?.some(group => who.groups.includes(group)) === true ||
    users?.includes(who.username) === true
  )
}

function admitsToken(rule: Rule, who: Subject): boolean {
  return rule.bearer === true && !lacksScopes(rule, who)
}

function admitsKey({ keys }: Rule, kind: 'machine' | 'personal'): boolean {
  return keys === 'personal' || (keys === true && kind === 'machine')
}

/** Whether the rule wants a scope that the token of this machine does not have. */
export function lacksScopes({ scopes }: Rule, who: Subject): boolean {
  return scopes?.every(scope => who.scopes?.includes(scope)) === false
}
