// The settings as options of the library: the same rows, named the way of JavaScript.
import { nearest } from '../settings/nearest.ts'
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
  const letters = (name: string) => name.replace(/[_-]/g, '').toLowerCase()
  const likely =
    names.find(name => letters(name) === letters(given)) ??
    nearest(given, names, distance => distance <= Math.max(1, Math.floor(given.length / 4)))
  const remedy = likely ? `did you mean ${likely}?` : 'docs/settings.md has them all, in capitals.'
  return `${JSON.stringify(given.slice(0, LONGEST_SHOWN))} is not an option; ${remedy}`
}
