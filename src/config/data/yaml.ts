// YAML 1.2 with the core schema: `no` and `2027-01-01` are text, `0123` and `1e3` are numbers. The library parses; this decides what
// a configuration may use, and words its errors: those of the library can quote the text, which may be a secret.

import { type ErrorCode, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { assertDepth, type DataEntry, DataError, type DataNode, listNode, mapNode, scalarNode } from './node.ts'

const MOST_ALIASES = 100
const CORE_TAG = /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)$/
const TAG_EXPECTED = 'tags are not supported; remove it'
const ENDS_EARLY = 'the file ends too early; is a closing quote or bracket missing?'
const INDENT_EXPECTED = 'wrong indentation; expected spaces, the same for all keys of one level'

const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have a tag or an anchor',
  BAD_ALIAS: 'expected the name of an anchor; put the text in quotes if it begins with * or &',
  BAD_COLLECTION_TYPE: TAG_EXPECTED,
  BAD_DIRECTIVE: 'this directive is not supported; remove the line',
  BAD_DQ_ESCAPE: 'this escape does not exist in double quotes; write \\\\ for a backslash, or use single quotes',
  BAD_INDENT: INDENT_EXPECTED,
  BAD_PROP_ORDER: 'an anchor or a tag is in the wrong place; expected it before its value',
  BAD_SCALAR_START: 'text cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key is expected on a line of its own; put text with a colon and a space in quotes',
  BLOCK_IN_FLOW: 'a list or a map of several lines cannot be inside of [ ] or { }',
  DUPLICATE_KEY: 'this key is there twice; expected it once',
  IMPOSSIBLE: 'this is not valid YAML',
  KEY_OVER_1024_CHARS: 'this key is too long',
  MISSING_CHAR: 'a character is missing here: a closing quote or bracket, a comma, or the space after a colon',
  MULTILINE_IMPLICIT_KEY: 'a key cannot have several lines; is a colon or a quote missing?',
  MULTIPLE_ANCHORS: 'a value has one anchor at most',
  MULTIPLE_DOCS: 'there is a second document after ---; expected one',
  MULTIPLE_TAGS: TAG_EXPECTED,
  NON_STRING_KEY: 'expected text as the key; put it in quotes',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'a tab cannot indent; expected spaces',
  TAG_RESOLVE_FAILED: TAG_EXPECTED,
  UNEXPECTED_TOKEN: 'this is not expected here; is a quote, a bracket or a colon missing before it?',
}

/** `undefined` for a document without any value. */
export function parseYaml(text: string): DataNode | undefined {
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    strict: true,
    prettyErrors: false,
    // Compared one with each other, which takes minutes for many keys; mapNode notices them, too.
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
  if (explicit && version !== '1.2') throw new DataError(0, `this is YAML ${version}; expected YAML 1.2`)
  const { contents } = document
  return !contents || (isScalar(contents) && contents.value === null) ? undefined : readDocument(contents)
}

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
    if (aliases > MOST_ALIASES) throw new DataError(offset, `expected at most ${MOST_ALIASES} aliases in the file`)
    const value = anchors.get(name)
    if (value === undefined)
      throw new DataError(offset, 'this alias has no anchor before it; put text that begins with * in quotes')
    if (value === 'open') throw new DataError(offset, 'this alias contains itself')
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
      throw new DataError(keyOffset, 'expected text as the key; put it in quotes')
    if (name.value === '<<' && isScalar(key) && key.type === 'PLAIN')
      throw new DataError(keyOffset, 'YAML 1.2 has no merge keys (<<); write the keys out')
    return { key: name.value, keyOffset, value: value ? read(value, level + 1) : scalarNode(keyOffset, null) }
  }
}

function isPlainValue(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function offsetOf({ range }: Node): number {
  return range?.[0] ?? 0
}
