// The structured settings: what does not fit into an environment variable. What they may say, and the check of it.
import { METHODS } from 'node:http'
import { z } from 'zod'
import { MenshenError } from '../../errors.ts'
import { audience, upstream } from '../kinds.ts'
import { likelyMeantOf } from '../nearest.ts'
import { problemsIn, sentenceOf } from './config-sentences.ts'
import { type DevProviderConfig, devProviderShape } from './dev-provider-config.ts'
import { refuseDuplicates } from './duplicate-rules.ts'
import { type LoginPageConfig, loginPageShape } from './login-page-config.ts'
import { pathPrefix } from './path-prefix.ts'
import { type Accepted, accepted, type ProviderConfig, providerObject } from './provider-config.ts'
import type { ANY_ROLE, CONSOLE_ROLE, NOBODYS_ROLE } from './role-names.ts'
import { refuseUnknownNames } from './unknown-names.ts'
import { languagesShape, wordsShape } from './words-config.ts'

export type Role = string

/** Those that are there where the configuration names none. */
export type UsualRole = typeof CONSOLE_ROLE | typeof NOBODYS_ROLE

export interface Rule<R extends Role = Role> {
  /** A path and everything below it. */
  readonly path: string
  /** Only the path itself. */
  readonly exact?: boolean | undefined
  /** Only these methods; HEAD counts as GET. */
  readonly methods?: readonly string[] | undefined
  /** Any of these admits: a role (`*` is every one), a group, a user. */
  readonly roles?: readonly R[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly users?: readonly string[] | undefined
  /** Machines too, with an access token of the provider as `Authorization: Bearer`. */
  readonly bearer?: boolean | undefined
  /** Whom such a token has to be for; otherwise what BEARER_AUDIENCE says. */
  readonly audience?: string | readonly string[] | undefined
  /** What such a token has to be good for: all of these scopes. */
  readonly scopes?: readonly string[] | undefined
  /** Everybody, signed in or not. Takes the place of the others. */
  readonly public?: true | undefined
  /** Only logs whom it would have refused. */
  readonly shadow?: boolean | undefined
}

/** Who gets a role: whoever fits everything that the row names. */
export interface RoleConfig<R extends Role = Role> {
  readonly role: R
  /** Of several providers, whose users it is about; the main one's if nothing is said. */
  readonly provider?: readonly string[] | undefined
  readonly username?: readonly string[] | undefined
  readonly groups?: readonly string[] | undefined
  /** By the place of any claim: `{ 'dept.name': ['财务部'] }`. */
  readonly claim?: Accepted | undefined
}

/** `R` are the roles that it names, `F` the fields of the user info that it maps. */
export interface Config<R extends Role = Role, F extends string = string> {
  /** The identity provider, on top of its preset; or a preset's name. */
  readonly provider?: ProviderConfig<F> | string | undefined
  /** Several of them, by the name that we know them by; the first is the main one. */
  readonly providers?: Readonly<Record<string, ProviderConfig<F>>> | undefined
  /** The first that fits gives the role; nobody's is `common`. */
  readonly roles?: readonly RoleConfig<R>[] | undefined
  readonly rules?: readonly Rule<NoInfer<R> | UsualRole | typeof ANY_ROLE>[] | undefined
  /** Applications by path prefix, for what does not go to UPSTREAM. */
  readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
  /** Sentences of the pages, in place of ours: `{ 'login.title': '员工登录' }`. */
  readonly words?: SentenceConfig | undefined
  /** Further languages with all of their sentences, or single sentences of one that we have. */
  readonly languages?: Readonly<Record<string, SentenceConfig>> | undefined
  /** A sentence and links under the button of the login page. */
  readonly loginPage?: LoginPageConfig | undefined
  /** Users of the development provider, in place of its own; counts only where that runs. */
  readonly devProvider?: DevProviderConfig | undefined
}

/** By name, as docs/words.md lists them. */
export type SentenceConfig = Readonly<Record<string, string>>

export interface UpstreamConfig {
  readonly url: string
  /** Whom the signed assertion is for; the address, if nothing is said. */
  readonly audience?: string | undefined
}

/** Gives the file its types: the roles that it names, and no others, are those of its rules. */
export function defineConfig<R extends Role = UsualRole, F extends string = never>(config: Config<R, F>): Config<R, F> {
  return config
}

/** Compared letter by letter. */
const name = z
  .string()
  .min(1)
  .refine(
    text => !/[*]|^\^/.test(text),
    "names are compared letter by letter, and a pattern fits nobody; write whole names, or roles: ['*'] in a rule for every signed-in user",
  )

const names = z.array(name).min(1, 'expected at least one name')

/** Those that Node reads at all: a rule for another one would cover nothing. */
const method = z
  .string()
  .refine(
    text => text !== '*' && !/^(all|any)$/i.test(text),
    'a rule without methods is for all of them; leave methods out',
  )
  .superRefine((text, context) => {
    if (!/^[A-Z-]+$/.test(text)) return void context.addIssue('expected methods in capitals, for example "GET"')
    const likely = likelyMeantOf(text, METHODS)
    if (!METHODS.includes(text))
      context.addIssue(`there is no such method${likely === undefined ? '' : `; did you mean ${likely}?`}`)
  })

/** Of a token; a wildcard would fit none. */
const tokenAudience = audience.check.refine(
  text => !text.includes('*'),
  'expected the whole name of an audience, without *',
)

/** RFC 6749, 3.3. */
const scope = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'expected one scope, without spaces, for example "mcp:read"')

const role = z
  .strictObject({
    role: z.string().regex(/^[\w.:-]{1,100}$/, 'expected a role of letters, digits and . : _ -'),
    provider: names.optional(),
    username: names.optional(),
    groups: names.optional(),
    claim: accepted.optional(),
  })
  .refine(({ username, groups, claim }) => (username ?? groups ?? claim) !== undefined, {
    message: 'expected username, groups or claim: who gets the role',
  })

/** It is part of who a user is, and of what a form sends. */
const providerId = z
  .string()
  .regex(/^[a-z][a-z\d-]{0,39}$/, 'expected a short name of small letters, digits and dashes')
  .refine(id => id !== 'default', 'this name is ours; choose another')

const rule = z
  .strictObject({
    path: pathPrefix('a rule'),
    exact: z.boolean().optional(),
    methods: z
      .array(method)
      .min(1)
      .refine(methods => !methods.includes('HEAD') || methods.includes('GET'), 'HEAD counts as GET; name GET instead')
      .optional(),
    roles: z
      .array(z.string().min(1))
      .min(1, 'expected at least one of developer, common, or a role of your own')
      .optional(),
    groups: names.optional(),
    users: names.optional(),
    bearer: z.boolean().optional(),
    audience: z.union([tokenAudience, z.array(tokenAudience).min(1)]).optional(),
    scopes: z.array(scope).min(1).optional(),
    public: z.literal(true).optional(),
    shadow: z.boolean().optional(),
  })
  .refine(({ roles, groups, users, public: everybody }) => !(roles ?? groups ?? users) !== (everybody === undefined), {
    error: ({ input }) =>
      `${hasPublic(input) ? 'has both public: true and roles, groups or users; ' : ''}expected either roles, groups or users, or public: true`,
  })
  .refine(({ bearer, public: everybody }) => !(bearer && everybody), {
    message: 'a public page asks for no token; expected bearer or public',
  })
  .refine(({ bearer, audience }) => bearer || audience === undefined, {
    message: 'audience is that of tokens; expected bearer: true beside it',
  })
  .refine(({ bearer, scopes }) => bearer || scopes === undefined, {
    message: 'scopes are those of tokens; expected bearer: true beside them',
  })

function hasPublic(rule: unknown): boolean {
  return Object.hasOwn(Object(rule), 'public')
}

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

const configShape = z
  .strictObject({
    provider: z.union([z.string().min(1), providerObject]).optional(),
    providers: z.record(providerId, providerObject).optional(),
    roles: z.array(role).optional(),
    rules: z.array(rule).superRefine(refuseDuplicates).optional(),
    upstreams: z
      .record(pathPrefix('a prefix'), upstreamPlace, {
        // Otherwise it would only say that the key is invalid.
        error: issue => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined),
      })
      .optional(),
    words: wordsShape.optional(),
    languages: languagesShape.optional(),
    loginPage: loginPageShape.optional(),
    devProvider: devProviderShape.optional(),
  })
  .superRefine(refuseUnknownNames)

/** What a configuration can say. */
export const CONFIG_NAMES: readonly string[] = Object.keys(configShape.shape)

/** Refuses with one sentence for each thing that is wrong: `where` it stands, and what the `whole` is called there. */
export function checkConfig(config: unknown, where: string, whole: string): Config {
  const result = configShape.safeParse(config, { error: sentenceOf })
  if (result.success) return result.data
  const problems = problemsIn(result.error.issues).map(({ path, message }) => {
    const what = path.length > 0 ? path.join('.') : whole
    return `${where}: ${what}: ${message}${message.endsWith('?') ? '' : '.'}`
  })
  throw new MenshenError('bad_settings', problems.join('\n'))
}
