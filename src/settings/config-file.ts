// The structured settings of menshen.config.ts: what does not fit into an environment variable.

import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { isOwnPath, OWN_PREFIX } from '../own-paths.ts'
import { audience, upstream } from './kinds.ts'

export const ROLES = ['developer', 'common'] as const
export type Role = (typeof ROLES)[number]

export interface Rule {
  /** A path and everything below it. */
  readonly path: string
  /** Only the path itself. */
  readonly exact?: boolean | undefined
  /** Only these methods; HEAD counts as GET. */
  readonly methods?: readonly string[] | undefined
  readonly roles?: readonly Role[] | undefined
  /** Everybody, signed in or not. Takes the place of `roles`. */
  readonly public?: true | undefined
  /** Only logs whom it would have refused. */
  readonly shadow?: boolean | undefined
}

export interface Config {
  readonly rules?: readonly Rule[] | undefined
  /** Applications by path prefix, for what does not go to UPSTREAM. */
  readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
}

export interface UpstreamConfig {
  readonly url: string
  /** Whom the signed assertion is for; the address, if nothing is said. */
  readonly audience?: string | undefined
}

const CONFIG_FILE = 'menshen.config.ts'

/** Gives the file its types. */
export function defineConfig(config: Config): Config {
  return config
}

const path = z
  .string()
  .regex(/^\/[^?#;%\\]*$/, 'expected a plain path that begins with /, for example "/reports"')
  .refine(text => !/\/\/|\/\.{1,2}(\/|$)/.test(text), 'expected a path without empty or dot segments')
  .refine(text => text === '/' || !text.endsWith('/'), 'expected no slash at the end: a rule covers what is below it')
  .refine(text => text !== OWN_PREFIX && !isOwnPath(text), 'this path is our own; leave it out')

const rule = z
  .strictObject({
    path,
    exact: z.boolean().optional(),
    methods: z
      .array(z.string().regex(/^[A-Z]+$/, 'expected methods in capitals, for example "GET"'))
      .min(1)
      .optional(),
    roles: z
      .array(z.enum(ROLES))
      .min(1, `expected at least one of ${ROLES.join(', ')}`)
      .optional(),
    public: z.literal(true).optional(),
    shadow: z.boolean().optional(),
  })
  .refine(({ roles, public: everybody }) => (roles === undefined) !== (everybody === undefined), {
    message: 'expected either roles or public: true',
  })

const upstreamPlace = z.union(
  [upstream.check, z.strictObject({ url: upstream.check, audience: audience.check.optional() })],
  { error: `expected ${upstream.expected}, or { url, audience }, for example "${upstream.example}"` },
)

const configShape = z.strictObject({
  rules: z.array(rule).optional(),
  upstreams: z.record(path, upstreamPlace).optional(),
})

/** The file in this folder, checked; an empty configuration if there is none. */
export async function loadConfig(folder: string): Promise<Config> {
  const file = resolve(folder, CONFIG_FILE)
  if (!existsSync(file)) return {}
  resolveOurselves()
  const { default: config } = await import(pathToFileURL(file).href).catch(cause => {
    throw new MenshenError('bad_settings', `${file} cannot be loaded: ${cause.message}`, cause)
  })
  const result = configShape.safeParse(config)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path: place, message }) => {
    const what = place.length > 0 ? place.join('.') : 'the default export'
    return `${file}: ${what}: ${message}.`
  })
  throw new MenshenError('bad_settings', problems.join('\n'))
}

/** Lets the file say `import { defineConfig } from 'menshen'` wherever it lies, with or without node_modules. */
function resolveOurselves(): void {
  const index = import.meta.url.replace(/settings\/config-file(\.\w+)$/, 'index$1')
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'menshen' ? { url: index, shortCircuit: true } : next(specifier, context),
  })
}
