// Strict JSON (RFC 8259) with the position of every value, and of the first mistake. JSON.parse has neither, accepts duplicate keys, and
// quotes the text around a mistake, which may be a secret.

import { type Phrase, phrase } from '../../text/text.ts'
import { assertDepth, type DataEntry, DataError, type DataNode, listNode, mapNode, scalarNode } from './node.ts'

const SPACE = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?/iy
const STRING = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*"/iuy
const WORDS = { true: true, false: false, null: null }

/** `undefined` for a text without any value. */
export function parseJson(text: string): DataNode | undefined {
  let at = 0
  skipSpace()
  if (at === text.length) return undefined
  const value = readValue(1)
  if (at < text.length) fail(phrase('config.data_json_after_end'))
  return value

  function fail(message: Phrase, offset = at): never {
    throw new DataError(offset, offset >= text.length ? phrase('config.data_json_early', { message }) : message)
  }

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }

  function skipSpace(): void {
    match(SPACE)
    if (text.startsWith('//', at) || text.startsWith('/*', at) || text[at] === '#')
      fail(phrase('config.data_json_comment'))
  }

  /** Also skips the space after the value. */
  function readValue(level: number): DataNode {
    assertDepth(at, level)
    const value = readPlain(level)
    skipSpace()
    return value
  }

  function readPlain(level: number): DataNode {
    const start = at
    if (text[at] === '{') return readObject(level)
    if (text[at] === '[') return readArray(level)
    if (text[at] === '"') return scalarNode(start, readString())
    const number = match(NUMBER)
    if (number !== undefined) {
      if (/[\d.a-z_+-]/i.test(text[at] ?? '')) fail(phrase('config.data_json_number'), start)
      return scalarNode(start, Number(number))
    }
    for (const [word, value] of Object.entries(WORDS))
      if (text.startsWith(word, at) && !/\w/.test(text[at + word.length] ?? '')) {
        at += word.length
        return scalarNode(start, value)
      }
    return fail(text[at] === "'" ? phrase('config.data_json_double_quotes') : phrase('config.data_json_value'))
  }

  function readString(): string {
    const start = at
    const quoted = match(STRING)
    if (quoted !== undefined) return JSON.parse(quoted)
    const end = /["\p{Cc}]|\\(?!["\\/bfnrt]|u[\da-f]{4})|\\["\\]/iuy
    for (at += 1; at < text.length; at += 1) {
      const found = match(end)
      if (found === '\\"' || found === '\\\\') at -= 1
      else if (found === '\\') fail(phrase('config.data_json_escape'), at - 1)
      else if (found !== undefined && found < ' ') fail(phrase('config.data_json_line_break'), at - 1)
    }
    return fail(phrase('config.data_json_open_quote'), start)
  }

  function readObject(level: number): DataNode {
    const start = at
    const entries: DataEntry[] = []
    readItems('}', () => {
      const keyOffset = at
      if (text[at] !== '"') fail(phrase('config.data_json_key'))
      const key = readString()
      skipSpace()
      if (text[at] !== ':') fail(phrase('config.data_json_colon'))
      at += 1
      skipSpace()
      entries.push({ key, keyOffset, value: readValue(level + 1) })
    })
    return mapNode(start, entries)
  }

  function readArray(level: number): DataNode {
    const start = at
    const items: DataNode[] = []
    readItems(']', () => items.push(readValue(level + 1)))
    return listNode(start, items)
  }

  /** From the opening bracket to the closing one. */
  function readItems(end: string, readItem: () => void): void {
    at += 1
    skipSpace()
    if (text[at] !== end)
      for (;;) {
        readItem()
        if (text[at] !== ',') break
        const comma = at
        at += 1
        skipSpace()
        if (text[at] === end) fail(phrase('config.data_json_no_comma', { end }), comma)
      }
    if (text[at] !== end) fail(phrase('config.data_json_comma', { end }))
    at += 1
  }
}
