// Finds values in an answer by a path: names with dots between them. A list is searched in each of its elements; the name
// `only` means the element of a list that has exactly one.
import { sanitize } from './safe-text.ts'

/** The accepted values of each path. */
type Accepted = Readonly<Record<string, readonly (string | number | boolean | null)[]>>
/** Paths in the order in which they are tried; the texts at several paths can form one. */
type Sources = readonly (string | readonly string[])[]

/** The value at the path; `undefined` if there is none. */
export function getPath(value: unknown, path: string): unknown {
  if (Array.isArray(value)) return inEach(value, path)
  if (typeof value !== 'object' || value === null) return undefined
  // A name may contain dots: `https://example.com/roles`.
  if (Object.hasOwn(value, path)) return (value as Record<string, unknown>)[path]
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    if (!Object.hasOwn(value, name)) continue
    const found = getPath((value as Record<string, unknown>)[name], path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** A list in a list has no names and is not searched, however deep an answer goes. */
function inEach(list: readonly unknown[], path: string): unknown {
  if (path === 'only') return list.length === 1 ? list[0] : undefined
  const found = list
    .filter(element => !Array.isArray(element))
    .map(element => getPath(element, path))
    .filter(element => element !== undefined)
  return found.length > 0 ? found.flat() : undefined
}

/** A copy of the value without the parts at the paths. One pass for all of them: an answer can have thousands of names. */
export function withoutPaths(value: unknown, paths: readonly string[]): unknown {
  return paths.length === 0 ? value : without(value, createPathSet(paths))
}

interface PathSet {
  has(path: string): boolean
  /** What follows the name in the paths that begin with it; `undefined` if none does. */
  below(name: string): PathSet | undefined
}

function createPathSet(paths: readonly string[]): PathSet {
  const whole = new Set(paths)
  // Paths that begin with the same name follow each other.
  const sorted = paths.filter(path => path.includes('.')).sort()
  /** For the elements of a list, which have the same names. */
  const known = new Map<string, PathSet | undefined>()

  function find(name: string): PathSet | undefined {
    const prefix = `${name}.`
    const rests: string[] = []
    for (let at = firstFrom(sorted, prefix); sorted[at]?.startsWith(prefix); at++)
      rests.push(sorted[at]?.slice(prefix.length) ?? '')
    return rests.length > 0 ? createPathSet(rests) : undefined
  }

  return {
    has: path => whole.has(path),
    below(name) {
      if (!known.has(name)) known.set(name, find(name))
      return known.get(name)
    },
  }
}

/** The index of the first text that does not come before the given one. */
function firstFrom(sorted: readonly string[], text: string): number {
  let [start, end] = [0, sorted.length]
  while (start < end) {
    const middle = (start + end) >> 1
    if ((sorted[middle] ?? '') < text) start = middle + 1
    else end = middle
  }
  return start
}

function without(value: unknown, paths: PathSet): unknown {
  if (Array.isArray(value)) return withoutInEach(value, paths)
  if (typeof value !== 'object' || value === null) return value
  // A name with dots can hide a second way to the same path: both are removed.
  const entries = Object.entries(value).filter(([name]) => !paths.has(name))
  return Object.fromEntries(
    entries.map(([name, inner]) => {
      const below = typeof inner === 'object' && inner !== null ? paths.below(name) : undefined
      return [name, below ? without(inner, below) : inner]
    }),
  )
}

function withoutInEach(list: readonly unknown[], paths: PathSet): unknown[] {
  if (list.length === 1 && paths.has('only')) return []
  return list.map(element => (Array.isArray(element) ? element : without(element, paths)))
}

/** The first path without one of its accepted values. A list is not accepted. */
export function notAccepted(value: unknown, accepted: Accepted): string | undefined {
  return firstPath(accepted, (path, values) => isOneOf(values, getPath(value, path)))
}

/** Compares claims of a user, who may have several groups: one accepted value is enough. */
export function notAmong(value: unknown, accepted: Accepted): string | undefined {
  return firstPath(accepted, (path, values) => [getPath(value, path)].flat().some(one => isOneOf(values, one)))
}

type Values = Accepted[string]

function firstPath(accepted: Accepted, fits: (path: string, values: Values) => boolean): string | undefined {
  return Object.entries(accepted).find(([path, values]) => !fits(path, values))?.[0]
}

function isOneOf(values: Values, found: unknown): boolean {
  return values.some(value => value === (found ?? null))
}

/** The text at the first path at which one of the answers has a value. */
export function textFrom(answers: readonly unknown[], sources: Sources): string {
  return findText(answers, sources)?.text ?? ''
}

interface FoundText {
  readonly text: string
  readonly source: Sources[number]
  /** The index of the answer that has it. */
  readonly answer: number
}

export function findText(answers: readonly unknown[], sources: Sources): FoundText | undefined {
  for (const source of sources) {
    for (let answer = 0; answer < answers.length; answer++) {
      const text = textOf(answers[answer], source)
      if (text !== '') return { text, source, answer }
    }
  }
  return undefined
}

/** Several paths form one text if all of them have a value. */
function textOf(answer: unknown, source: Sources[number]): string {
  if (typeof source === 'string') return asText(getPath(answer, source))
  const parts = source.map(path => asText(getPath(answer, path)))
  return parts.every(part => part !== '') ? parts.join('-') : ''
}

/** Groups come as a list of names, as an object with names as keys, or as one name. Each path adds its own. */
export function namesFrom(answers: readonly unknown[], sources: Sources): string[] {
  const found = sources.flat().flatMap(path => {
    const values = answers.map(answer => getPath(answer, path))
    return asNames(values.find(value => value !== undefined))
  })
  return [...new Set(found)]
}

/** All texts at the path: each element of a list. */
export function textsAt(answer: unknown, path: string): string[] {
  return [getPath(answer, path)].flat().map(asText).filter(Boolean)
}

/** Numbers become text without loss: readJson keeps as text what a number cannot hold. */
function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return ''
}

function asNames(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(asText).filter(Boolean)
  if (typeof value === 'object' && value !== null) return keysOf(value)
  const text = asText(value)
  return text ? [text] : []
}

/** The name of a group that the user is not in can be there, too: `{ admins: false, staff: true }`. */
function keysOf(groups: object): string[] {
  const entries = Object.entries(groups).filter(([, isMember]) => isMember !== false && isMember !== null)
  return entries.map(([name]) => name)
}

const MAX_SHOWN = 30

/** The names and types in an answer, without its values: for an operator who sets up a mapping. */
export function shapeOf(value: unknown, depth = 2): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return value === '' ? 'empty text' : typeof value
  const inner = Array.isArray(value) ? value : Object.entries(value)
  if (inner.length === 0) return Array.isArray(value) ? 'empty list' : 'empty object'
  if (depth <= 0) return Array.isArray(value) ? 'list' : 'object'
  if (Array.isArray(value)) return `list of ${shapeOf(value[0], depth - 1)}`
  const shown = Object.entries(value).slice(0, MAX_SHOWN)
  return `{ ${shown.map(([name, one]) => `${sanitize(name)}: ${shapeOf(one, depth - 1)}`).join(', ')} }`
}
