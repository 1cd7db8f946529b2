// The file .env beside the environment.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { MenshenError } from '../errors.ts'
import type { Environment } from './read.ts'

/** The environment wins over the file, except where it is only empty: that is as good as not set. */
export function withEnvFile(environment: Environment, file: string): Environment {
  const set = Object.entries(environment).filter(([, value]) => value)
  return { ...readEnvFile(file), ...Object.fromEntries(set) }
}

function readEnvFile(file: string): Environment {
  try {
    return parseWhole(readFileSync(file, 'utf8').replace(/^\ufeff/, ''))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new MenshenError('cannot_start', `${file} cannot be read (${code}); make it a readable file, or remove it.`)
  }
}

const UNQUOTED = /^\s*(?:export\s+)?(?<name>[\w.-]+)[ \t]*=(?![ \t]*['"`])(?<value>[^\r\n]*#[^\r\n]*)/gm

/**
 * Node ends a value without quotes at its first #, and so would cut a secret such as `ab#cd` in silence. Here, as in a shell, a
 * comment begins only behind a space.
 */
function parseWhole(text: string): Environment {
  const parsed: Record<string, string | undefined> = parseEnv(text)
  for (const { groups: { name = '', value = '' } = {} } of text.matchAll(UNQUOTED)) {
    const cut = value.slice(0, value.indexOf('#')).trim()
    // What is not so stands inside of a longer value, or is said again further down.
    if (parsed[name] === cut) parsed[name] = value.replace(/\s#.*$/, '').trim()
  }
  return parsed
}
