// A sentence and the values in it: `{name}` means a value, in our own tables and in an operator's configuration alike.
import type { zhCN } from './zh-CN.ts'

/** Every sentence that the Chinese table has, and no other. */
export type Sentences<Table> = { readonly [K in keyof Table]: string }

/** The name of a sentence. */
export type Key = keyof typeof zhCN

type PlaceholdersIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never

/** The values that a sentence needs: nothing for most of them. */
export type ValuesOf<K extends Key, Value> = [PlaceholdersIn<(typeof zhCN)[K]>] extends [never]
  ? []
  : [values: Readonly<Record<PlaceholdersIn<(typeof zhCN)[K]>, Value>>]

const PLACEHOLDER = /\{(\w+)\}/

export function placeholdersIn(sentence: string): Set<string> {
  return new Set(sentence.split(PLACEHOLDER).filter((_part, n) => n % 2 === 1))
}

/** The parts of a sentence in their order, each value in its place. */
export function fill<Value>(sentence: string, values: Readonly<Record<string, Value>>): (string | Value)[] {
  return sentence.split(PLACEHOLDER).map((part, n) => {
    if (n % 2 === 0) return part
    return values[part] ?? `{${part}}`
  })
}
