// A sentence in one language, and the values in it. `{name}` is a value, both in our own tables and in an operator's configuration.
// A row with several forms uses the one that fits its number (`COUNTS`), by the plural rules of the language:
//
//   'login.button':          'Continue with {name}'
//   'phrase.warnings_count': { one: '1 warning', other: '{count} warnings' }

/** The values that a row can have plural forms for. */
export const COUNTS = ['count', 'ended', 'times'] as const

export type Sentence = string | PluralForms

export type PluralForms = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string }

type PlaceholdersIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never

/** Every sentence that `Table` has, and no other. Those with a number of `COUNTS` may have several forms. */
export type Sentences<Table> = {
  readonly [K in keyof Table]: [Extract<PlaceholdersIn<Table[K]>, (typeof COUNTS)[number]>] extends [never]
    ? string
    : Sentence
}

/** The arguments for the values of a sentence: none for most of them. */
export type ValuesOf<Text, Value> = [PlaceholdersIn<Text>] extends [never]
  ? []
  : [values: Readonly<Record<PlaceholdersIn<Text>, Value>>]

const PLACEHOLDER = /\{(\w+)\}/

export function placeholdersIn(message: string): Set<string> {
  return new Set(message.split(PLACEHOLDER).filter((_part, n) => n % 2 === 1))
}

/** The parts of a sentence in their order, each value in its place. */
export function fill<Value>(
  row: Sentence,
  lang: string,
  values: Readonly<Record<string, Value>> = {},
): (string | Value)[] {
  const message = typeof row === 'string' ? row : formFor(row, lang, values)
  const parts = message.split(PLACEHOLDER)
  const filled = parts.map((part, n) => (n % 2 === 0 ? part : (values[part] ?? `{${part}}`)))
  return /^zh\b/.test(lang) ? closeHanGaps(filled) : filled
}

const HAN_AT_START = /^\p{Script=Han}/u
const HAN_AT_END = /\p{Script=Han}$/u
const HAN_THEN_SPACE = /(?<=\p{Script=Han}) $/u
const SPACE_THEN_HAN = /^ (?=\p{Script=Han})/u

/** Chinese has spaces only beside Latin letters and digits: a button has a space on each side of GitHub, and none around Feishu in Chinese. */
function closeHanGaps<Value>(filled: readonly (string | Value)[]): (string | Value)[] {
  return filled.map((part, n) => {
    if (n % 2 === 1 || typeof part !== 'string') return part
    const [before, after] = [filled[n - 1], filled[n + 1]]
    const ahead = typeof before === 'string' && HAN_AT_END.test(before) ? part.replace(SPACE_THEN_HAN, '') : part
    return typeof after === 'string' && HAN_AT_START.test(after) ? ahead.replace(HAN_THEN_SPACE, '') : ahead
  })
}

function formFor(row: PluralForms, lang: string, values: Readonly<Record<string, unknown>>): string {
  const count = values[COUNTS.find(name => values[name] !== undefined) ?? '']
  return row[new Intl.PluralRules(lang).select(Number(count))] ?? row.other
}
