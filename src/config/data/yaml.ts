// YAML 1.2 with the core schema: `no` and `2027-01-01` are text, `0123` and `1e3` are numbers. The library parses; this file decides
// what a configuration may use, and has its own messages, because those of the library can quote the text, which may be a secret.

import { type ErrorCode, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, type Node, parseDocument } from 'yaml'
import { type Phrase, phrase } from '../../text/text.ts'
import { assertDepth, type DataEntry, DataError, type DataNode, listNode, mapNode, scalarNode } from './node.ts'

const MAX_ALIASES = 100
/** About 20,000 lines. Each takes the library 5 to 12 µs, most if it is out of place. */
const MAX_TOKENS = 100_000
const CORE_TAG = /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)$/
const TAG_EXPECTED = phrase('config.data_tag')
const ENDS_EARLY = phrase('config.data_ends_early')
const INDENT_EXPECTED = phrase('config.data_indent')

const MESSAGES: Readonly<Record<ErrorCode, Phrase>> = {
  ALIAS_PROPS: phrase('config.data_alias_props'),
  BAD_ALIAS: phrase('config.data_alias_name'),
  BAD_COLLECTION_TYPE: TAG_EXPECTED,
  BAD_DIRECTIVE: phrase('config.data_directive'),
  BAD_DQ_ESCAPE: phrase('config.data_yaml_escape'),
  BAD_INDENT: INDENT_EXPECTED,
  BAD_PROP_ORDER: phrase('config.data_prop_order'),
  BAD_SCALAR_START: phrase('config.data_text_start'),
  BLOCK_AS_IMPLICIT_KEY: phrase('config.data_own_line'),
  BLOCK_IN_FLOW: phrase('config.data_block_in_flow'),
  DUPLICATE_KEY: phrase('config.data_key_twice'),
  IMPOSSIBLE: phrase('config.data_not_yaml'),
  KEY_OVER_1024_CHARS: phrase('config.data_long_key'),
  MISSING_CHAR: phrase('config.data_missing_character'),
  MULTILINE_IMPLICIT_KEY: phrase('config.data_multiline_key'),
  MULTIPLE_ANCHORS: phrase('config.data_anchors'),
  MULTIPLE_DOCS: phrase('config.data_documents'),
  MULTIPLE_TAGS: TAG_EXPECTED,
  NON_STRING_KEY: phrase('config.data_text_key'),
  RESOURCE_EXHAUSTION: phrase('config.data_too_deep'),
  TAB_AS_INDENT: phrase('config.data_tab'),
  TAG_RESOLVE_FAILED: TAG_EXPECTED,
  UNEXPECTED_TOKEN: phrase('config.data_unexpected'),
}

/** `undefined` for a document without any value. */
export function parseYaml(text: string): DataNode | undefined {
  assertFewTokens(text)
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    strict: true,
    prettyErrors: false,
    // The library compares every key with every other, which takes minutes for many keys; mapNode finds duplicates, too.
    uniqueKeys: false,
    keepSourceTokens: false,
    lineCounter: new LineCounter(),
  })
  const [problem] = [...document.errors, ...document.warnings].sort((one, other) => one.pos[0] - other.pos[0])
  if (problem) {
    const [offset] = problem.pos
    const isAtEnd = offset >= text.trimEnd().length
    throw new DataError(offset, isAtEnd ? ENDS_EARLY : (MESSAGES[problem.code] ?? MESSAGES.IMPOSSIBLE))
  }
  const { explicit, version } = document.directives?.yaml ?? {}
  if (explicit && version !== '1.2')
    throw new DataError(0, phrase('config.data_yaml_version', { version: String(version) }))
  const { contents } = document
  return !contents || (isScalar(contents) && contents.value === null) ? undefined : readDocument(contents)
}

/** Splitting the text into tokens takes a small part of the time that parsing takes. */
function assertFewTokens(text: string): void {
  let [tokens, offset] = [0, 0]
  for (const token of new Lexer().lex(text)) {
    tokens += 1
    if (tokens > MAX_TOKENS) throw new DataError(offset, phrase('config.data_tokens', { limit: MAX_TOKENS }))
    // Marks of the lexer are not in the text, which has no control characters.
    if (!LEXER_MARKS.has(token)) offset += token.length
  }
}

const LEXER_MARKS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f'])

/** An anchor that is still being read would contain itself. */
type Anchors = Map<string, DataNode | 'open'>

function readDocument(root: Node): DataNode {
  const anchors: Anchors = new Map()
  let aliases = 0
  return read(root, 1)

  function read(node: Node, level: number): DataNode {
    const offset = offsetOf(node)
    assertDepth(offset, level)
    if (isAlias(node)) return readAlias(node.source, offset)
    const { anchor, tag } = node as { anchor?: string; tag?: string }
    if (tag !== undefined && !CORE_TAG.test(tag)) throw new DataError(offset, TAG_EXPECTED)
    if (anchor !== undefined) anchors.set(anchor, 'open')
    const value = readValue(node, offset, level)
    if (anchor !== undefined) anchors.set(anchor, value)
    return value
  }

  function readAlias(name: string, offset: number): DataNode {
    aliases += 1
    if (aliases > MAX_ALIASES) throw new DataError(offset, phrase('config.data_aliases', { limit: MAX_ALIASES }))
    const value = anchors.get(name)
    if (value === undefined) throw new DataError(offset, phrase('config.data_no_anchor'))
    if (value === 'open') throw new DataError(offset, phrase('config.data_alias_itself'))
    return value
  }

  function readValue(node: Node, offset: number, level: number): DataNode {
    if (isSeq(node))
      return listNode(
        offset,
        node.items.map(item => readItem(item, offset, level)),
      )
    if (isMap(node))
      return mapNode(
        offset,
        node.items.map(({ key, value }) => readEntry(key as Node | null, value as Node | null, offset, level)),
      )
    if (isScalar(node) && isPlainValue(node.value)) return scalarNode(offset, node.value)
    throw new DataError(offset, TAG_EXPECTED)
  }

  function readItem(item: unknown, offset: number, level: number): DataNode {
    return item === null ? scalarNode(offset, null) : read(item as Node, level + 1)
  }

  function readEntry(key: Node | null, value: Node | null, parent: number, level: number): DataEntry {
    const keyOffset = key ? offsetOf(key) : parent
    const name = key ? read(key, level + 1) : undefined
    if (name?.kind !== 'scalar' || typeof name.value !== 'string')
      throw new DataError(keyOffset, phrase('config.data_text_key'))
    if (name.value === '<<' && isScalar(key) && key.type === 'PLAIN')
      throw new DataError(keyOffset, phrase('config.data_merge_key'))
    return { key: name.value, keyOffset, value: value ? read(value, level + 1) : scalarNode(keyOffset, null) }
  }
}

function isPlainValue(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function offsetOf({ range }: Node): number {
  return range?.[0] ?? 0
}
