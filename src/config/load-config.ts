// Finds the file of the structured settings and loads it, wherever it lies and whatever its folder takes a script for.

import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire, type LoadHookSync, type ResolveHookSync, registerHooks } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import { MenshenError, sentence, setting } from '../errors.ts'
import { type Config, checkConfig } from './config-file.ts'
import type { Environment } from './settings.ts'

export const CONFIG_FILE = 'menshen.config'
export const ENDINGS = ['ts', 'mts', 'js', 'mjs']

/** The file that CONFIG names, else the one in the folder; `undefined` if there is none. */
export function findConfigFile(folder: string, named?: string): string | undefined {
  if (named !== undefined) return namedFile(resolve(folder, named))
  const found = ENDINGS.map(ending => `${CONFIG_FILE}.${ending}`).filter(name => existsSync(join(folder, name)))
  if (found.length > 1)
    throw new MenshenError(
      'bad_settings',
      sentence`${found.join(' and ')} are both in ${folder}; expected one of them, or ${setting('CONFIG')} with the name of the one that counts.`,
    )
  return found[0] && join(folder, found[0])
}

/** Which files would be taken if they were there. */
export function configCandidates(named: string | undefined): string[] {
  return named === undefined ? ENDINGS.map(ending => `${CONFIG_FILE}.${ending}`) : [named]
}

function namedFile(file: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
  throw new MenshenError('bad_settings', [
    {
      setting: 'CONFIG',
      message: sentence`${setting('CONFIG')} is "${file}", where there is no file; expected the path of a configuration, for example ./menshen.config.ts.`,
      example: './menshen.config.ts',
    },
  ])
}

/** Checked; an empty configuration without a file. */
export async function loadConfigFile(file: string | undefined): Promise<Config> {
  return file === undefined ? {} : loadConfig(file)
}

/**
 * As the files are now, however often it was loaded before. Adds to `files` which they are, also where it fails: it, and the
 * scripts that it imports, but for packages.
 */
export async function loadConfig(file: string, files = new Set<string>()): Promise<Config> {
  // Node loads an address once: with a mark of its own it is another one, and so is whatever it imports.
  const mark = `?read=${randomUUID()}`
  files.add(file)
  const { cache } = createRequire(import.meta.url)
  const known = new Set(Object.keys(cache))
  const resolve: ResolveHookSync = (specifier, context, next) => {
    if (specifier === 'menshen') return resolveOurselves()
    const isImported = context.parentURL?.endsWith(mark)
    // Also one that is not there yet.
    if (isImported && /^\.{1,2}\//.test(specifier)) files.add(fileURLToPath(new URL(specifier, context.parentURL)))
    const resolved = next(specifier, context)
    return isImported && isOurs(resolved.url) ? { ...resolved, url: resolved.url + mark } : resolved
  }
  const load: LoadHookSync = (url, context, next) => {
    if (!url.endsWith(mark)) return next(url, context)
    files.add(fileURLToPath(url))
    return loadAsModule(url, context, next)
  }
  // It would be a script that exports nothing, and so a configuration without rules.
  if (!/\S/.test(readFileSync(file, 'utf8')))
    throw new MenshenError('bad_settings', `${file} is empty; expected export default { … }.`)
  const hooks = registerHooks({ resolve, load })
  try {
    // Node remembers where a link led when it was followed first.
    const { default: config } = await import(pathToFileURL(realpathSync(file)).href + mark)
    return checkConfig(config, file, 'the default export')
  } catch (error) {
    throw error instanceof MenshenError ? error : cannotBeLoaded(file, error)
  } finally {
    hooks.deregister()
    // Scripts of CommonJS are kept by their path, whatever mark their address has.
    for (const path of Object.keys(cache))
      if (!known.has(path) && isOurs(pathToFileURL(path).href)) {
        files.add(path)
        delete cache[path]
      }
  }
}

function isOurs(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/')
}

/** Lets the file say `import { defineConfig } from 'menshen'` wherever it lies, with or without node_modules. */
function resolveOurselves() {
  const url = import.meta.url.replace(/config\/load-config(\.\w+)$/, 'index$1')
  return { url, shortCircuit: true }
}

/**
 * A script with `export` is a module, even in a folder whose package.json says commonjs. Read as TypeScript, because
 * only then does a syntax error say its line.
 */
const loadAsModule: LoadHookSync = (url, context, next) => {
  const isModule = /^\s*(import|export)\b/m.test(readFileSync(new URL(url), 'utf8'))
  return next(url, isModule ? { ...context, format: 'module-typescript' } : context)
}

function cannotBeLoaded(file: string, error: unknown): MenshenError {
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  const reason = message
    .replace(/\?read=[\w-]+/g, '')
    .replace(/\s+/g, ' ')
    // JSON.parse quotes what stands around the place, which may be a secret.
    .replace(/Unexpected token .* is not valid JSON/, 'not valid JSON')
  const sentence = `${file} cannot be loaded: ${reason}${placeIn(stack)}.`
  return new MenshenError('bad_settings', sentence, error)
}

/** Where it went wrong, as the first line of the stack that is about a file. */
function placeIn(stack: string): string {
  const [, place = '', line] = /^(?: +at (?:.* \()?)?((?:file:\/\/)?\/.*?):(\d+)(?::\d+)?\)?$/m.exec(stack) ?? []
  if (!place) return ''
  return ` (${place.startsWith('file:') ? fileURLToPath(place) : place}:${line})`
}

// The file .env beside the environment.

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
