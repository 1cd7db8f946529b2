// menshen.config.yaml, .yml and .json: read within limits, checked by the same schema as a configuration in code. An error names the
// file, the line and the column, and quotes no content.

import { MenshenError } from '../../errors.ts'
import { phrase, phrasedProblem } from '../../text/text.ts'
import { readSmallText, SmallFileError } from '../../util/small-file.ts'
import { type Config, inspectConfig } from '../file.ts'
import { problemAt, withFullStop } from '../issue-text.ts'
import { parseJson } from './json.ts'
import { DataError, type DataNode, keyOffsetAt, mapNode, nodeAt, positionOf, toValue } from './node.ts'

export const DATA_EXTENSIONS = ['yaml', 'yml', 'json']
const MAX_FILE_BYTES = 512 * 1024
/** Text in another encoding, or a file that is not text. */
const CONTROL = /[^\t\n\r\P{Cc}]/u

export interface DataFile {
  readonly config: Config
  /** The file has no value at all. */
  readonly isEmpty: boolean
  /** `file:line:column` of the value at a path of the configuration. */
  locate(path: string): string
}

export function isDataFile(file: string): boolean {
  return DATA_EXTENSIONS.some(extension => file.toLowerCase().endsWith(`.${extension}`))
}

export async function readDataFile(file: string): Promise<DataFile> {
  const text = readText(file)
  const at = (offset: number) => {
    const { line, column } = positionOf(text, offset)
    return `${file}:${line}:${column}`
  }
  const found = await parse(file, text, at)
  // An empty file is an empty configuration.
  const data = found ?? mapNode(0, [])
  const locate = (path: string) => at(nodeAt(data, path).offset)
  const result = inspectConfig(toValue(data))
  if ('config' in result) return { config: result.config, isEmpty: found === undefined, locate }
  throw new MenshenError(
    'bad_settings',
    result.problems.map(({ path, key, phrase: given, isTextExpected }) => {
      const offset = key === undefined ? nodeAt(data, path).offset : keyOffsetAt(data, path, key)
      const isUnquoted = isTextExpected && nodeAt(data, path).kind === 'scalar'
      const message = isUnquoted ? phrase('config.put_in_quotes', { message: given }) : given
      return problemAt(at(offset), path, message, path || phrase('config.whole_file'))
    }),
  )
}

function readText(file: string): string {
  try {
    return readSmallText(file, MAX_FILE_BYTES)
  } catch (error) {
    if (!(error instanceof SmallFileError)) throw error
    const problem = phrase('config.data_unreadable', { file, reason: error.reason, limit: MAX_FILE_BYTES / 1024 })
    throw new MenshenError('bad_settings', [phrasedProblem({}, problem)])
  }
}

/** `undefined` for a file without any value. */
async function parse(file: string, text: string, at: (offset: number) => string): Promise<DataNode | undefined> {
  try {
    const control = text.search(CONTROL)
    if (control >= 0) throw new DataError(control, phrase('config.data_control'))
    if (file.toLowerCase().endsWith('.json')) return parseJson(text)
    // Only YAML files need the library.
    const { parseYaml } = await import('./yaml.ts')
    return parseYaml(text)
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    const message = phrase('config.in_source', { source: at(error.offset), message: withFullStop(error.problem) })
    throw new MenshenError('bad_settings', [phrasedProblem({}, message)])
  }
}
