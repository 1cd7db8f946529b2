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
    return parseEnv(readFileSync(file, 'utf8').replace(/^\ufeff/, ''))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new MenshenError('cannot_start', `${file} cannot be read (${code}); make it a readable file, or remove it.`)
  }
}
