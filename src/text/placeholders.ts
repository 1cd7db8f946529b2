// One sentence in one language, and the values in it. `{name}` means a value, in our own tables and in an operator's
// configuration alike. A row with several forms has the one that fits the value `count`, by the plural rules of the language:
//
//   'login.button':          'Sign in with {name}'
//   'phrase.warnings_count': { one: '1 warning', other: '{count} warnings' }

export type Sentence = string | PluralForms

export type PluralForms = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string }

type PlaceholdersIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never

/** Every sentence that `Table` has, and no other. Those with a `{count}` may have several forms. */
export type Sentences<Table> = {
  readonly [K in keyof Table]: 'count' extends PlaceholdersIn<Table[K]> ? Sentence : string
}

/** The arguments for the values of a sentence: none for most of them. */
export type ValuesOf<Text, Value> = [PlaceholdersIn<Text>] extends [never]
  ? []
  : [values: Readonly<Record<PlaceholdersIn<Text>, Value>>]

const PLACEHOLDER = /\{(\w+)\}/

export function placeholdersIn(sentence: string): Set<string> {
  return new Set(sentence.split(PLACEHOLDER).filter((_part, n) => n % 2 === 1))
}

/** The parts of a sentence in their order, each value in its place. */
export function fill<Value>(
  row: Sentence,
  lang: string,
  values: Readonly<Record<string, Value>> = {},
): (string | Value)[] {
  const sentence = typeof row === 'string' ? row : formFor(row, lang, values.count)
  return sentence.split(PLACEHOLDER).map((part, n) => (n % 2 === 0 ? part : (values[part] ?? `{${part}}`)))
}

function formFor(row: PluralForms, lang: string, count: unknown): string {
  return row[new Intl.PluralRules(lang).select(Number(count))] ?? row.other
}
