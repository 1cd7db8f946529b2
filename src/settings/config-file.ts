// The structured settings: what does not fit into an environment variable. What they may say, and the check of it.
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { isOwnPath, OWN_PREFIX } from '../own-paths.ts'
import { refuseDuplicates } from './duplicate-rules.ts'
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

/** Gives the file its types. */
export function defineConfig(config: Config): Config {
  return config
}

/** A plain path that is not our own; `covering` is what covers everything below it. */
const pathOf = (covering: string) =>
  z
    .string()
    .regex(/^\/[^?#;%\\]*$/, 'expected a plain path that begins with /, for example "/reports"')
    .refine(text => !/\/\/|\/\.{1,2}(\/|$)/.test(text), 'expected a path without empty or dot segments')
    .refine(
      text => text === '/' || !text.endsWith('/'),
      `expected no slash at the end: ${covering} covers what is below it`,
    )
    .refine(text => text !== OWN_PREFIX && !isOwnPath(text), 'this path is our own; leave it out')

const rule = z
  .strictObject({
    path: pathOf('a rule'),
    exact: z.boolean().optional(),
    methods: z
      .array(z.string().regex(/^[A-Z]+$/, 'expected methods in capitals, for example "GET"'))
      .min(1)
      .refine(methods => !methods.includes('HEAD') || methods.includes('GET'), 'HEAD counts as GET; name GET instead')
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

const upstreamShape = z.union([
  upstream.check,
  z.strictObject({ url: upstream.check, audience: audience.check.optional() }),
])

/** Of several possible shapes zod would tell what is wrong with one, and not what is expected. */
const upstreamPlace = z.unknown().transform((given, context) => {
  const { success, data } = upstreamShape.safeParse(given)
  if (success) return data
  context.addIssue(`expected ${upstream.expected}, or { url, audience }, for example "${upstream.example}"`)
  return z.NEVER
})

const configShape = z.strictObject({
  rules: z.array(rule).superRefine(refuseDuplicates).optional(),
  upstreams: z
    .record(pathOf('a prefix'), upstreamPlace, {
      // Otherwise it would only say that the key is invalid.
      error: issue => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined),
    })
    .optional(),
})

/** Refuses with one sentence for each thing that is wrong: `where` it stands, and what the `whole` is called there. */
export function checkConfig(config: unknown, where: string, whole: string): Config {
  const result = configShape.safeParse(config)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path: place, message }) => {
    const what = place.length > 0 ? place.join('.') : whole
    return `${where}: ${what}: ${message}.`
  })
  throw new MenshenError('bad_settings', problems.join('\n'))
}
