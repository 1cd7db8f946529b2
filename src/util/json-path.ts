// Finds things in an answer by their place: names with dots between them, through lists into each of their elements; the
// name `only` is the element of a list that has no other.
import type { Accepted, Sources } from '../config/provider-config.ts'

/** What is there; `undefined` if nothing is. */
export function getPath(value: unknown, place: string): unknown {
  if (Array.isArray(value)) return inEach(value, place)
  if (typeof value !== 'object' || value === null) return undefined
  // A name may have dots of its own: `https://example.com/roles`.
  if (Object.hasOwn(value, place)) return (value as Record<string, unknown>)[place]
  for (let dot = place.indexOf('.'); dot > 0; dot = place.indexOf('.', dot + 1)) {
    const name = place.slice(0, dot)
    if (!Object.hasOwn(value, name)) continue
    const found = getPath((value as Record<string, unknown>)[name], place.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** A list in a list has no names: nothing leads further, however deep an answer goes. */
function inEach(list: readonly unknown[], place: string): unknown {
  if (place === 'only') return list.length === 1 ? list[0] : undefined
  const found = list
    .filter(element => !Array.isArray(element))
    .map(element => getPath(element, place))
    .filter(element => element !== undefined)
  return found.length > 0 ? found.flat() : undefined
}

/** The same without what is there; what does not lead to the place is left as it is. */
export function withoutPath(value: unknown, place: string): unknown {
  if (Array.isArray(value)) return withoutInEach(value, place)
  if (typeof value !== 'object' || value === null) return value
  // A name with dots of its own can hide another way to the same place: each of them is gone.
  const entries = Object.entries(value).filter(([name]) => name !== place)
  return Object.fromEntries(
    entries.map(([name, inner]) => [
      name,
      place.startsWith(`${name}.`) ? withoutPath(inner, place.slice(name.length + 1)) : inner,
    ]),
  )
}

function withoutInEach(list: readonly unknown[], place: string): unknown[] {
  if (place === 'only' && list.length === 1) return []
  return list.map(element => (Array.isArray(element) ? element : withoutPath(element, place)))
}

/** The first place that does not have one of its accepted values. A list is none of them. */
export function notAccepted(value: unknown, accepted: Accepted): string | undefined {
  return placeWithout(accepted, (place, values) => isOneOf(values, getPath(value, place)))
}

/** The same for what is said of a user, who may have several groups: one of them is enough. */
export function notAmong(value: unknown, accepted: Accepted): string | undefined {
  return placeWithout(accepted, (place, values) => [getPath(value, place)].flat().some(one => isOneOf(values, one)))
}

type Values = Accepted[string]

function placeWithout(accepted: Accepted, fits: (place: string, values: Values) => boolean): string | undefined {
  return Object.entries(accepted).find(([place, values]) => !fits(place, values))?.[0]
}

function isOneOf(values: Values, found: unknown): boolean {
  return values.some(value => value === (found ?? null))
}

/** The first place at which one of the answers has something, as text. */
export function textFrom(answers: readonly unknown[], sources: Sources): string {
  return findText(answers, sources)?.text ?? ''
}

export interface FoundText {
  readonly text: string
  readonly source: Sources[number]
  /** Which of the answers has it. */
  readonly answer: number
}

export function findText(answers: readonly unknown[], sources: Sources): FoundText | undefined {
  for (const source of sources) {
    for (const [answer, given] of answers.entries()) {
      const parts = [source].flat().map(place => asText(getPath(given, place)))
      if (parts.every(part => part !== '')) return { text: parts.join('-'), source, answer }
    }
  }
  return undefined
}

/** Groups come as a list of names, as an object with names as keys, or as one name; each place adds its own. */
export function namesFrom(answers: readonly unknown[], sources: Sources): string[] {
  const found = sources.flat().flatMap(place => {
    const values = answers.map(answer => getPath(answer, place))
    return asNames(values.find(value => value !== undefined))
  })
  return [...new Set(found)]
}

/** All texts that are there: of a list each. */
export function textsAt(answer: unknown, place: string): string[] {
  return [getPath(answer, place)].flat().map(asText).filter(Boolean)
}

/** A number becomes text without loss: readJson keeps those whose digits a number cannot hold. */
function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return ''
}

function asNames(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(asText).filter(Boolean)
  if (typeof value === 'object' && value !== null) return Object.keys(value)
  const text = asText(value)
  return text ? [text] : []
}

const MOST_SHOWN = 30

/** What an answer looks like, without its values: names and types, for whoever has to set up a mapping. */
export function shapeOf(value: unknown, depth = 2): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return value === '' ? 'empty text' : typeof value
  const inner = Array.isArray(value) ? value : Object.entries(value)
  if (inner.length === 0) return Array.isArray(value) ? 'empty list' : 'empty object'
  if (depth <= 0) return Array.isArray(value) ? 'list' : 'object'
  if (Array.isArray(value)) return `list of ${shapeOf(value[0], depth - 1)}`
  const shown = Object.entries(value).slice(0, MOST_SHOWN)
  return `{ ${shown.map(([name, one]) => `${sanitize(name)}: ${shapeOf(one, depth - 1)}`).join(', ')} }`
}

/** A name comes from outside too: it must not paint the terminal, nor begin a line. */
export function sanitize(name: string, longest = 40): string {
  return name.slice(0, longest).replace(/[\p{C}\u2028\u2029]+/gu, '?')
}
