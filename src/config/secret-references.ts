// A secret that the configuration names instead of containing it: `{ env: 'NAME' }` or `{ file: 'PATH' }`. The schema accepts them in
// SECRET_PATHS; a start reads them. `menshen rules` and `menshen schema` leave them as they are.

import { z } from 'zod'
import type { Problem } from '../errors.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { readSmallText, SmallFileError } from '../util/small-file.ts'
import { issueText, problemAt } from './issue-text.ts'
import { Secret } from './secret.ts'

type Variables = Readonly<Record<string, string | undefined>>

/** Where a secret is read from: a variable of the environment or of .env, or a file. A line break at its end is not part of it. */
export interface SecretReference {
  /** The name of a variable of the environment or of .env. */
  readonly env?: string | undefined
  /** The path of a file. */
  readonly file?: string | undefined
}

/** A reference that was read. */
export interface ResolvedReference extends SecretReference {
  readonly value: Secret
}

const MAX_FILE_BYTES = 64 * 1024
const ENV_OR_FILE_EXPECTED = issueText(phrase('config.data_reference_either'))

/** A misspelt `env` or `file`. Any other key is probably the secret, in braces that YAML reads as a map, so it is not quoted. */
const MISSPELT = /^(?:[env]{2,4}|[file]{3,5})$/i

export const secretReference = z
  .strictObject(
    {
      env: z
        .string()
        .regex(/^[A-Za-z_]\w{0,199}$/, issueText(phrase('config.data_reference_name')))
        .optional(),
      file: z.string().min(1).optional(),
    },
    {
      error: issue =>
        issue.code === 'unrecognized_keys' && !issue.keys.every(key => MISSPELT.test(key))
          ? ENV_OR_FILE_EXPECTED
          : undefined,
    },
  )
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), {
    message: ENV_OR_FILE_EXPECTED,
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ minProperties: 1, maxProperties: 1 })

const PROVIDER_SECRETS = [['clientSecret'], ['tokenRequest', 'headers', '*'], ['userInfoRequest', 'headers', '*']]
const UPSTREAM_SECRETS = ['headers', '*']

/** `*` is any key. */
const SECRET_PATHS: readonly (readonly string[])[] = [
  ...PROVIDER_SECRETS.flatMap(path => [
    ['provider', ...path],
    ['providers', '*', ...path],
  ]),
  ['upstreams', '*', ...UPSTREAM_SECRETS],
  ['hosts', '*', 'upstream', ...UPSTREAM_SECRETS],
  ['hosts', '*', 'upstreams', '*', ...UPSTREAM_SECRETS],
]

export interface ReadSecrets<C> {
  /** Every reference is a ResolvedReference, except for files of upstreams. */
  readonly config: C
  /** Keyed by the path in the configuration that names them. */
  readonly files: ReadonlyMap<string, string>
  /** The names of variables. */
  readonly variables: readonly string[]
  readonly problems: readonly Problem[]
}

/** Reads all references. No message contains any of their content. */
export function readSecrets<C extends object>(config: C, variables: Variables): ReadSecrets<C> {
  const files = new Map<string, string>()
  const names = new Set<string>()
  const problems: Problem[] = []
  const read = (given: unknown, keys: readonly string[]): unknown => {
    if (!isReference(given)) return given
    const path = keys.join('.')
    const { env, file } = given
    if (env !== undefined) names.add(env)
    // upstream-files.ts reads the files of upstreams each time an upstream is opened.
    if (file !== undefined && !keys[0]?.startsWith('provider')) return given
    if (file !== undefined) files.set(path, file)
    const result = oneLine(given, readReference(given, variables))
    if ('text' in result) return { ...given, value: new Secret(result.text) }
    problems.push(problemAt(undefined, path, result.problem))
    return given
  }
  const resolved = SECRET_PATHS.reduce<unknown>((value, path) => replaceAt(value, path, [], read), config)
  return { config: resolved as C, files, variables: [...names], problems }
}

/** The text of a reference that a start has read. */
export function revealReference(reference: SecretReference): string {
  if (!('value' in reference) || !(reference.value instanceof Secret)) throw new Error('a reference was not read')
  return reference.value.reveal()
}

type Result = { readonly text: string } | { readonly problem: Phrase }

/** Reads one reference. The problem contains none of its content. */
export function readReference({ env, file }: SecretReference, variables: Variables): Result {
  return file === undefined ? readVariable(env ?? '', variables) : readFile(file)
}

/** A client secret or a header has only one line; a file with several contains something else. */
function oneLine({ env, file }: SecretReference, result: Result): Result {
  if (!('text' in result) || !/[\r\n]/.test(result.text)) return result
  return { problem: phrase('config.secret_lines', { source: file ?? env ?? '' }) }
}

function readVariable(name: string, variables: Variables): Result {
  const text = Object.hasOwn(variables, name) ? withoutLastBreak(variables[name] ?? '') : ''
  return text ? { text } : { problem: phrase('config.variable_missing', { name }) }
}

function readFile(file: string): Result {
  try {
    const text = withoutLastBreak(readSmallText(file, MAX_FILE_BYTES))
    return text ? { text } : { problem: phrase('config.secret_empty', { file }) }
  } catch (error) {
    if (!(error instanceof SmallFileError)) throw error
    return { problem: phrase('config.secret_unreadable', { file, code: error.reason }) }
  }
}

/** Editors and `echo` add one. */
function withoutLastBreak(text: string): string {
  return text.replace(/\r?\n$/, '')
}

function isReference(given: unknown): given is SecretReference {
  return typeof given === 'object' && given !== null && !('value' in given)
}

/** A copy with other values at a path. */
function replaceAt(
  value: unknown,
  [next, ...rest]: readonly string[],
  above: readonly string[],
  replace: (value: unknown, path: readonly string[]) => unknown,
): unknown {
  if (next === undefined) return replace(value, above)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, part]) =>
    next === '*' || next === key ? [key, replaceAt(part, rest, [...above, key], replace)] : [key, part],
  )
  return Object.fromEntries(entries)
}
