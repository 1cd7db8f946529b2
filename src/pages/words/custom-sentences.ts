// The operator's own sentences: each has a name that there is, is text, and has the values of the sentence it replaces.
import { nearest } from '../../settings/nearest.ts'
import { placeholdersIn } from './sentences.ts'

type Table = Readonly<Record<string, string>>

interface Demands {
  /** Nothing may be left out, except what `mayLack` names. */
  readonly whole?: boolean
  readonly mayLack?: (key: string) => boolean
}

/** One sentence for each thing that is wrong. */
export function checkSentences(where: string, given: Table, known: Table, demands: Demands = {}): string[] {
  const { whole = false, mayLack = () => false } = demands
  const missing = whole ? Object.keys(known).filter(key => !Object.hasOwn(given, key) && !mayLack(key)) : []
  return [
    ...Object.entries(given).flatMap(([key, sentence]) => {
      const model = Object.hasOwn(known, key) ? known[key] : undefined
      const place = `${where}['${key}']`
      return model === undefined ? unknownKey(place, key, known) : checkPlaceholders(place, sentence, model)
    }),
    ...(missing.length > 0 ? [`${where} lacks ${missing.map(key => `'${key}'`).join(', ')}.`] : []),
  ]
}

export function checkPageLanguage(given: string, names: readonly string[]): string[] {
  if (names.includes(given)) return []
  const [primary] = given.toLowerCase().split('-')
  const likely =
    names.find(name => name.toLowerCase().split('-')[0] === primary) ?? nearest(given, names, letters => letters <= 2)
  const expected = `expected ${names.join(', ')}, or a name of languages in the configuration`
  return [`PAGE_LANGUAGE is "${given}"; ${expected}${likely ? `; did you mean ${likely}?` : ', for example en.'}`]
}

function unknownKey(place: string, key: string, known: Table): string[] {
  const likely = nearest(key, Object.keys(known), letters => letters <= Math.max(2, key.length / 4))
  const meant = likely ? `did you mean '${likely}'?` : 'expected a name of docs/words.md.'
  return [`${place} is no sentence of ours; ${meant}`]
}

function checkPlaceholders(place: string, sentence: string, model: string): string[] {
  const [given, needed] = [placeholdersIn(sentence), placeholdersIn(model)]
  const lacking = [...needed.difference(given)].map(name => `{${name}}`)
  const surplus = [...given.difference(needed)].map(name => `{${name}}`)
  return [
    ...(lacking.length > 0 ? [`${place} lacks ${lacking.join(' and ')}; ours is "${model}".`] : []),
    ...(surplus.length > 0 ? [`${place} has ${surplus.join(' and ')}, which has no value; ours is "${model}".`] : []),
  ]
}
