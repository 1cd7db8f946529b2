// The settings as options of the library: the same rows, named the way of JavaScript.
import { settingOfAlias } from '../settings/misspelt.ts'
import { likelyMeantOf } from '../settings/nearest.ts'
import { SETTINGS } from '../settings/rows.ts'

/** `BASE_URL` is `baseUrl`. */
export type OptionName<S extends string> = S extends `${infer Word}_${infer Rest}`
  ? `${Lowercase<Word>}${Capitalize<OptionName<Rest>>}`
  : Lowercase<S>

const SETTING_BY_OPTION = new Map(Object.keys(SETTINGS).map(setting => [optionName(setting), setting]))

export function optionName(setting: string): string {
  return setting.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}

const LONGEST_SHOWN = 60

/** `undefined` if there is no such option. */
export function settingOf(option: string): string | undefined {
  return SETTING_BY_OPTION.get(option)
}

/** A sentence about settings, for whoever knows them as options. What stands in quotes is a value. */
export function inOptionNames(sentence: string): string {
  return sentence.replace(/("[^"\n]*")|\b([A-Z][A-Z_]+)\b(=)?/g, (all, quoted?: string, word = '', equals = '') => {
    if (quoted !== undefined || !Object.hasOwn(SETTINGS, word)) return all
    return optionName(word) + (equals ? ': ' : '')
  })
}

/** The sentence about an option that there is not, with the name that was probably meant. */
export function unknownOption(given: string, others: readonly string[]): string {
  const names = [...SETTING_BY_OPTION.keys(), ...others]
  const likely = likelyOption(given) ?? likelyMeantOf(given, names)
  const remedy = likely ? `did you mean ${likely}?` : 'the type MenshenOptions has them all.'
  return `${JSON.stringify(given.slice(0, LONGEST_SHOWN))} is not an option; ${remedy}`
}

/** What others call `upstreamUrl`. */
function likelyOption(given: string): string | undefined {
  const setting = settingOfAlias(given.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase())
  return setting && optionName(setting)
}
