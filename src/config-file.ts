// The structured settings of menshen.config.ts: what does not fit into an environment variable.
import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { MenshenError } from './errors.ts'

export const ROLES = ['developer', 'common'] as const
export type Role = (typeof ROLES)[number]

export interface Rule {
  /** A path and everything below it. */
  readonly path: string
  readonly roles: readonly Role[]
}

export interface Config {
  readonly rules?: readonly Rule[]
}

export const CONFIG_FILE = 'menshen.config.ts'

/** Gives the file its types. */
export function defineConfig(config: Config): Config {
  return config
}

const ruleShape = z.strictObject({
  path: z
    .string()
    .regex(/^\/[^?#]*$/, 'expected a path that begins with /, for example "/reports"')
    .refine(path => !/^\/_menshen(\/|$)/.test(path), 'the pages below /_menshen are not for rules; leave it out'),
  roles: z.array(z.enum(ROLES)).min(1, `expected at least one of ${ROLES.join(', ')}`),
})
const configShape = z.strictObject({ rules: z.array(ruleShape).optional() })

/** The file in this folder, checked; an empty configuration if there is none. */
export async function loadConfig(folder: string): Promise<Config> {
  const path = resolve(folder, CONFIG_FILE)
  if (!existsSync(path)) return {}
  resolveOurselves()
  const { default: config } = await import(pathToFileURL(path).href).catch(cause => {
    throw new MenshenError('bad_settings', `${path} cannot be loaded: ${cause.message}`, cause)
  })
  const result = configShape.safeParse(config)
  if (result.success) return { rules: result.data.rules ?? [] }
  const problems = result.error.issues.map(
    issue => `${path}: ${issue.path.join('.') || 'the default export'}: ${issue.message}.`,
  )
  throw new MenshenError('bad_settings', problems.join('\n'))
}

/** Lets the file say `import { defineConfig } from 'menshen'` wherever it lies, with or without node_modules. */
function resolveOurselves(): void {
  const index = new URL(import.meta.url.replace(/config-file(\.\w+)$/, 'index$1')).href
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'menshen' ? { url: index, shortCircuit: true } : next(specifier, context),
  })
}
