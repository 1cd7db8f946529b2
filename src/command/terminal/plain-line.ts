// One line for people: a time, a few words in columns, and what else is known as name=value.
import { safeText } from '../../observe/audit/safe-text.ts'
import type { Paint } from './colours.ts'

type Fact = string | number | boolean | undefined

export function plainLine(
  time: number | undefined,
  words: readonly string[],
  facts: Readonly<Record<string, Fact>>,
  paint: Paint,
): string {
  const others = Object.entries(facts).flatMap(([name, fact]) => (fact === undefined ? [] : `${name}=${word(fact)}`))
  const at = time === undefined ? '-' : new Date(time).toISOString()
  const known = others.length > 0 ? ` ${paint('dim', others.join(' '))}` : ''
  return `${paint('dim', at)} ${words.join(' ')}${known}\n`
}

/** In quotes if it could be taken for more than one. */
export function word(value: string | number | boolean): string {
  const text = safeText(String(value))
  return /^[^\s"=]+$/u.test(text) ? text : JSON.stringify(text)
}
