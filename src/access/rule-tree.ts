// The rules as a tree of path segments: a walk along the path finds the one that decides, however many there are.
import type { Rule } from '../config/file.ts'
import { ANY_ROLE } from '../config/role-names.ts'

export interface RuleNode {
  /** In the spelling of the first rule here. */
  readonly path: string
  readonly parent: RuleNode | undefined
  /** The most specific first. */
  readonly rules: Rule[]
  readonly children: Map<string, RuleNode>
  /** Children keyed by another name under which a server would find them. */
  readonly aliases: Map<string, RuleNode[]>
  /** Children that a server could respond with for this node itself. */
  readonly indexPages: RuleNode[]
  /** How the rules write the last segment. */
  readonly spellings: Set<string>
  /** The length of the longest key among the children. */
  longestKey: number
  /** Whether it has another name, too. */
  readonly hasAlias: boolean
}

/** Decides about paths that no other rule covers. */
export const LAST_RULE: Rule = { path: '/', roles: [ANY_ROLE] }

/** Admits no caller. It decides about interpretations that rules of the configuration must not decide about. */
export const CLOSED_RULE: Rule = { path: '/', roles: [] }

export interface SegmentNames {
  /** Segments with the same key are the same to the tree. */
  keyOf(segment: string): string
  aliasOf(key: string): string | undefined
  isIndexPage(key: string): boolean
}

export const LITERAL: SegmentNames = { keyOf: segment => segment, aliasOf: () => undefined, isIndexPage: () => false }

export interface RuleTree {
  readonly root: RuleNode
  nodeOf(rule: Rule): RuleNode
}

export function buildRuleTree(rules: readonly Rule[], naming: SegmentNames): RuleTree {
  const root = newNode('/', undefined)
  const nodes = new Map<Rule, RuleNode>()
  for (const rule of rules) {
    const segments = rule.path === '/' ? [] : rule.path.slice(1).split('/')
    const node = segments.reduce((parent, segment) => childOf(parent, segment, naming), root)
    node.rules.push(rule)
    node.rules.sort((one, other) => rank(other) - rank(one))
    nodes.set(rule, node)
  }
  return { root, nodeOf: rule => nodes.get(rule) ?? root }
}

function childOf(parent: RuleNode, segment: string, { keyOf, aliasOf, isIndexPage }: SegmentNames): RuleNode {
  const key = keyOf(segment)
  const known = parent.children.get(key)
  const alias = aliasOf(key)
  const child = known ?? newNode(below(parent, segment), parent, alias !== undefined)
  child.spellings.add(segment)
  if (known) return known
  parent.children.set(key, child)
  parent.longestKey = Math.max(parent.longestKey, key.length)
  if (isIndexPage(key)) parent.indexPages.push(child)
  if (alias !== undefined) parent.aliases.set(alias, [...(parent.aliases.get(alias) ?? []), child])
  return child
}

function newNode(path: string, parent: RuleNode | undefined, hasAlias = false): RuleNode {
  const [children, aliases, spellings] = [new Map(), new Map(), new Set<string>()]
  return { path, parent, rules: [], children, aliases, indexPages: [], spellings, longestKey: 0, hasAlias }
}

/** The path of a node, followed by more text. */
export function below({ path }: RuleNode, rest: string): string {
  return path === '/' ? `/${rest}` : `${path}/${rest}`
}

/** The last node along a path, as far as there is one. */
export function follow({ root }: RuleTree, path: string): RuleNode {
  let node = root
  for (let start = 1; start <= path.length; ) {
    const slash = path.indexOf('/', start)
    const end = slash === -1 ? path.length : slash
    const child = node.children.get(path.slice(start, end))
    if (!child) break
    node = child
    start = end + 1
  }
  return node
}

/**
 * The rules that decide about a path that reaches this node and ends here, or continues where no rule follows. There are several
 * only if they spell one path differently.
 */
export function decidingRules(node: RuleNode, method: string, ends: boolean): readonly Rule[] {
  for (let at: RuleNode | undefined = node; at; at = at.parent) {
    const isHere = ends && at === node
    const covering = at.rules.filter(rule => isFor(rule, method) && (isHere || !rule.exact))
    const [first] = covering
    if (first) return covering.filter(rule => rank(rule) === rank(first))
  }
  return [LAST_RULE]
}

/** The rules that decide about what is below the path of a node. */
export function* rulesBelow(node: RuleNode, method: string): Generator<Rule> {
  yield* decidingRules(node, method, false)
  for (const child of node.children.values()) {
    yield* decidingRules(child, method, true)
    yield* rulesBelow(child, method)
  }
}

/** Everything below a path comes before the path's own rules; the last rule is the one that decides where no other does. */
export function inOrder(root: RuleNode): Rule[] {
  const covering = root.rules.some(({ exact, methods, shadow }) => !exact && !methods && !shadow)
  return [...rulesFrom(root), ...(covering ? [] : [LAST_RULE])]
}

function rulesFrom({ children, rules }: RuleNode): Rule[] {
  const below = [...children].sort(([one], [other]) => (one < other ? -1 : 1))
  return [...below.flatMap(([, child]) => rulesFrom(child)), ...rules]
}

function isFor({ methods }: Rule, method: string): boolean {
  return methods === undefined || methods.includes(method === 'HEAD' ? 'GET' : method)
}

/** For one path: the exact rule, then the one for certain methods, then the shadow rule. */
function rank({ exact, methods, shadow }: Rule): number {
  return (exact ? 4 : 0) + (methods ? 2 : 0) + (shadow ? 1 : 0)
}
