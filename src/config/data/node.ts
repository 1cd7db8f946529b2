// A configuration as data, before it is checked: what YAML and JSON are parsed into. Every value has its position in the file.

import { type Phrase, phrase, phraseIn } from '../../text/text.ts'

export type DataNode = ScalarNode | ListNode | MapNode

interface PositionedNode {
  /** Its position in the text. */
  readonly offset: number
  /** The number of values, including all nested ones. An alias has the size of the value that it refers to. */
  readonly size: number
}

export interface ScalarNode extends PositionedNode {
  readonly kind: 'scalar'
  readonly value: string | number | boolean | null
}

export interface ListNode extends PositionedNode {
  readonly kind: 'list'
  readonly items: readonly DataNode[]
}

export interface MapNode extends PositionedNode {
  readonly kind: 'map'
  readonly entries: readonly DataEntry[]
}

export interface DataEntry {
  readonly key: string
  readonly keyOffset: number
  readonly value: DataNode
}

/** A problem and its position. The problem never contains any of the content, which may be a secret. */
export class DataError extends Error {
  readonly offset: number
  readonly problem: Phrase

  constructor(offset: number, problem: Phrase) {
    super(phraseIn('en', problem))
    this.offset = offset
    this.problem = problem
  }
}

const MAX_DEPTH = 64
const MAX_VALUES = 100_000

export function assertDepth(offset: number, level: number): void {
  if (level > MAX_DEPTH) throw new DataError(offset, phrase('config.data_levels', { limit: MAX_DEPTH }))
}

export function scalarNode(offset: number, value: ScalarNode['value']): ScalarNode {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new DataError(offset, phrase('config.data_not_finite'))
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new DataError(offset, phrase('config.data_not_exact'))
  return { kind: 'scalar', offset, size: 1, value }
}

export function listNode(offset: number, items: readonly DataNode[]): ListNode {
  return { kind: 'list', offset, size: totalSize(offset, items), items }
}

/** Refuses duplicate keys, because one of the two would be ignored. */
export function mapNode(offset: number, entries: readonly DataEntry[]): MapNode {
  const seen = new Set<string>()
  for (const { key, keyOffset } of entries) {
    if (seen.has(key)) throw new DataError(keyOffset, phrase('config.data_key_twice'))
    if (key === '__proto__') throw new DataError(keyOffset, phrase('config.data_proto_key'))
    seen.add(key)
  }
  const values = entries.map(({ value }) => value)
  return { kind: 'map', offset, size: totalSize(offset, values), entries }
}

function totalSize(offset: number, values: readonly DataNode[]): number {
  const size = values.reduce((sum, value) => sum + value.size, 1)
  if (size > MAX_VALUES) throw new DataError(offset, phrase('config.data_values', { limit: MAX_VALUES }))
  return size
}

export function toValue(node: DataNode): unknown {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return node.items.map(toValue)
  return Object.fromEntries(node.entries.map(({ key, value }) => [key, toValue(value)]))
}

/** The value at a path such as `hosts.wiki.example.com.rules.0`, or the nearest value above it. */
export function nodeAt(node: DataNode, path: string): DataNode {
  return deepest(node, path).node
}

/** The position of a key, for example of an unknown one. */
export function keyOffsetAt(node: DataNode, path: string, key: string): number {
  const found = nodeAt(node, path)
  const entry = found.kind === 'map' ? found.entries.find(entry => entry.key === key) : undefined
  return entry?.keyOffset ?? found.offset
}

/** Names of hosts and claims contain dots, so a path is ambiguous: the interpretation that leads furthest is used. */
function deepest(node: DataNode, path: string): { readonly node: DataNode; readonly rest: number } {
  let best = { node, rest: path.length }
  if (path === '' || node.kind === 'scalar') return best
  const children: readonly (readonly [string, DataNode])[] =
    node.kind === 'list'
      ? node.items.map((item, n) => [String(n), item])
      : node.entries.map(({ key, value }) => [key, value])
  for (const [key, child] of children) {
    if (path !== key && !path.startsWith(`${key}.`)) continue
    const found = deepest(child, path.slice(key.length + 1))
    if (found.rest < best.rest) best = found
  }
  return best
}

/** Counted as in editors: from 1, in characters. */
export function positionOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  const lines = text.slice(0, offset).split(/\r\n?|\n/)
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 }
}
