// The .env file. It imports little, because a start reads it before anything else is loaded.

import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { MenshenError } from '../errors.ts'
import { isPresent } from '../util/is-present.ts'
import type { Environment } from './settings.ts'

export const ENV_FILE = '.env'

/** The environment wins over the file, except for empty variables, which are treated as not set. */
export function withEnvFile(environment: Environment, file: string): Environment {
  const set = Object.entries(environment).filter(([, value]) => value)
  return { ...parseEnvText(readText(file)), ...Object.fromEntries(set) }
}

/** The names that the file sets; none if it cannot be read. */
export function namesInEnvFile(file: string): string[] {
  try {
    return Object.keys(parseEnvText(readText(file)))
  } catch {
    return []
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\ufeff/, '')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isPresent(file)) return ''
    throw new MenshenError('cannot_start', `${file} cannot be read (${code}); make it readable, or remove it.`)
  }
}

const ASSIGNMENT = /^[ \t]*(?:export[ \t]+)?[\w.-]+[ \t]*=[ \t]*/
const COMMENT_OR_EMPTY = /^\s*(?:#.*)?$/

/** The number of the first line that Node would skip: neither `NAME=value` nor a comment. A quoted value may span several lines. */
export function unreadLineIn(file: string): number | undefined {
  const lines = readText(file).split(/\r?\n/)
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n] ?? ''
    const assignment = ASSIGNMENT.exec(line)
    if (!assignment && !COMMENT_OR_EMPTY.test(line)) return n + 1
    const value = assignment ? line.slice(assignment[0].length) : ''
    const quote = /^['"`]/.exec(value)?.[0]
    if (quote === undefined) continue
    const end = value.includes(quote, 1) ? n : lines.findIndex((later, i) => i > n && later.includes(quote))
    // Without a closing quote, the opening one is part of the value.
    if (end < 0) continue
    const rest = end === n ? value.slice(1) : (lines[end] ?? '')
    if (!COMMENT_OR_EMPTY.test(rest.slice(rest.indexOf(quote) + 1))) return end + 1
    n = end
  }
  return undefined
}

const UNQUOTED = /^\s*(?:export\s+)?(?<name>[\w.-]+)[ \t]*=(?![ \t]*['"`])(?<value>[^\r\n]*#[^\r\n]*)/gm

/** Node ends an unquoted value at its first #, which would shorten a secret such as `ab#cd`. Here, as in a shell, a comment begins after a space. */
function parseEnvText(text: string): Environment {
  const parsed: Record<string, string | undefined> = parseEnv(text)
  for (const { groups: { name = '', value = '' } = {} } of text.matchAll(UNQUOTED)) {
    const cut = value.slice(0, value.indexOf('#')).trim()
    // Otherwise the line is part of a longer value, or a later line sets the name again.
    if (parsed[name] === cut) parsed[name] = value.replace(/\s#.*$/, '').trim()
  }
  return parsed
}
