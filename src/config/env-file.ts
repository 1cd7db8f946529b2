// The .env file. It imports little, because a start reads it before anything else is loaded.

import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { MenshenError } from '../errors.ts'
import type { Environment } from './settings.ts'

export const ENV_FILE = '.env'

/** The environment wins over the file, except for empty variables, which are treated as not set. */
export function withEnvFile(environment: Environment, file: string): Environment {
  const set = Object.entries(environment).filter(([, value]) => value)
  return { ...readEnvFile(file), ...Object.fromEntries(set) }
}

function readEnvFile(file: string): Environment {
  try {
    return parseEnvText(readFileSync(file, 'utf8').replace(/^\ufeff/, ''))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new MenshenError('cannot_start', `${file} cannot be read (${code}); make it readable, or remove it.`)
  }
}

const UNQUOTED = /^\s*(?:export\s+)?(?<name>[\w.-]+)[ \t]*=(?![ \t]*['"`])(?<value>[^\r\n]*#[^\r\n]*)/gm

/** Node ends a value without quotes at its first #, which would shorten a secret such as `ab#cd`. Here, as in a shell, a comment begins after a space. */
function parseEnvText(text: string): Environment {
  const parsed: Record<string, string | undefined> = parseEnv(text)
  for (const { groups: { name = '', value = '' } = {} } of text.matchAll(UNQUOTED)) {
    const cut = value.slice(0, value.indexOf('#')).trim()
    // Otherwise the line is part of a longer value, or a later line sets the name again.
    if (parsed[name] === cut) parsed[name] = value.replace(/\s#.*$/, '').trim()
  }
  return parsed
}
