// The language that a command answers in: as `--language` says, else as the locale of the terminal does.

import type { Environment } from '../config/settings.ts'
import type { OperatorLanguage } from '../phrases.ts'
import type { CommandRow } from './command-table.ts'
import { refusal } from './usage.ts'

export function operatorLanguage(
  asked: string | undefined,
  { LC_ALL, LC_MESSAGES, LANG }: Environment,
  row: Pick<CommandRow, 'usage'>,
): OperatorLanguage {
  // In the order in which POSIX has them count.
  if (asked === undefined) return isChinese(LC_ALL || LC_MESSAGES || LANG || '') ? 'zh-CN' : 'en'
  if (isChinese(asked)) return 'zh-CN'
  if (/^en\b/i.test(asked)) return 'en'
  throw refusal(`--language is "${asked}", and there are zh-CN and en`, row)
}

/** `zh`, `zh-CN`, `zh_CN.UTF-8`. */
function isChinese(name: string): boolean {
  return /^zh(?![a-z])/i.test(name)
}
