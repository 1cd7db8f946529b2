// The configuration, in code or as data: its types, its schema and the check.

import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import type { PluralForms, Sentence } from '../text/placeholders.ts'
import { type Phrase, phrase, phraseIn } from '../text/text.ts'
import { METHODS } from '../util/node-http.ts'
import { type DevProviderConfig, devProviderShape } from './dev-provider.ts'
import { hostName } from './host-names.ts'
import { issueText, problemAt, withFullStop } from './issue-text.ts'
import { audience } from './kinds.ts'
import { type MachineConfig, machinesShape } from './machines.ts'
import { pathPrefix } from './path-prefix.ts'
import { type PortalKeys, portalShape, refuseForeignStarts } from './portal.ts'
import { type Accepted, type ProviderConfig, providerObject } from './provider.ts'
import { accepted } from './provider-fields.ts'
import { ANY_ROLE, DEFAULT_ROLE_NAMES, type DefaultRole, type Role } from './role-names.ts'
import { conditionShapes, conditionsOfUsers, type RuleConditions } from './rule-conditions.ts'
import { checkShape, type ShapeProblem } from './shape-problems.ts'
import { closestName, settingNamed } from './suggestions.ts'
import { listUpstreams, refuseUnknownFields, type UpstreamConfig, upstreamOrObject } from './upstreams.ts'

// Texts of the operator. The pages know which texts there are, and check the rest.

const MAX_TEXT_LENGTH = 500
/** The value of PAGE_LANGUAGE that leaves the choice to the browser. */
export const AUTO_LANGUAGE = 'auto'

const ownSentence = z
  .string(issueText(phrase('config.expected_text')))
  .regex(/\S/, issueText(phrase('config.expected_text')))
  .max(MAX_TEXT_LENGTH, issueText(phrase('config.expected_at_most', { limit: MAX_TEXT_LENGTH })))
const pluralForms = z.strictObject({
  ...Object.fromEntries(['zero', 'one', 'two', 'few', 'many'].map(form => [form, ownSentence.optional()])),
  other: ownSentence,
})

export const wordsShape = z.record(
  z.string(),
  z.union([
    ownSentence,
    z
      .custom<PluralForms>(row => pluralForms.safeParse(row).success, issueText(phrase('config.expected_text')))
      .meta({ type: 'object', required: ['other'], additionalProperties: { type: 'string', pattern: '\\S' } }),
  ]),
)

const languageTag = z
  .string()
  .refine(tag => tag !== AUTO_LANGUAGE && isLanguageTag(tag), issueText(phrase('config.expected_language_tag')))

export const languagesShape = z.record(languageTag, wordsShape, {
  // Otherwise zod would only report that the key is invalid.
  error: issue => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined),
})

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag
  } catch {
    return false
  }
}

// Additions to the login page: a sentence under the button, and links such as privacy and help.

/** One text for all languages, or one per language of the page. */
export type TextConfig = string | Readonly<Record<string, string>>

export interface LoginPageConfig {
  /** The sentence: one text, or one for each language. */
  readonly note?: TextConfig | undefined
  /** The links, for example to a help page. */
  readonly links?: readonly LinkConfig[] | undefined
}

export interface LinkConfig {
  /** The text of the link: one text, or one for each language. */
  readonly text: TextConfig
  /** Where the link leads: a path, or an address with `https:`, `http:`, `mailto:` or `tel:`. */
  readonly href: string
}

const line = (longest: number) =>
  z
    .string(issueText(phrase('config.expected_text')))
    .regex(/\S/, issueText(phrase('config.expected_text')))
    .max(longest, issueText(phrase('config.expected_at_most', { limit: longest })))

const textShape = (longest: number) =>
  z
    .unknown()
    .transform((given, context): TextConfig => {
      const shape = z.union([
        line(longest),
        z.record(z.string(), line(longest)).refine(texts => Object.keys(texts).length > 0),
      ])
      const { success, data } = shape.safeParse(given)
      if (success) return data
      context.addIssue({
        code: 'custom',
        message: issueText(phrase('config.expected_texts', { limit: longest, example: "{ 'zh-CN': '…', en: '…' }" })),
        params: { type: 'text' },
      })
      return z.NEVER
    })
    .meta({
      anyOf: [
        { type: 'string', pattern: '\\S', maxLength: longest },
        {
          type: 'object',
          minProperties: 1,
          additionalProperties: { type: 'string', pattern: '\\S', maxLength: longest },
        },
      ],
    })

const MAX_LINKS = 8

export const loginPageShape = z.strictObject({
  note: textShape(300).optional(),
  links: z
    .array(
      z.strictObject({
        text: textShape(60),
        href: z
          .string()
          .max(1000)
          .refine(isHarmless, issueText(phrase('config.expected_link')))
          .meta({ pattern: '^(?:/|[A-Za-z]+:)' }),
      }),
    )
    .max(MAX_LINKS, issueText(phrase('config.at_most_links', { limit: MAX_LINKS })))
    .optional(),
})

function isHarmless(href: string): boolean {
  if (/^\/(?![/\\])/.test(href)) return !/[\\\s]/.test(href)
  return URL.canParse(href) && ['https:', 'http:', 'mailto:', 'tel:'].includes(new URL(href).protocol)
}

export interface Rule<R extends Role = Role> extends RuleConditions {
  /** A path and everything below it. */
  readonly path: string
  /** Only the path itself. */
  readonly exact?: boolean | undefined
  /** Only these methods; HEAD is treated as GET. */
  readonly methods?: readonly string[] | undefined
  /** Admits callers with one of these roles; `*` is every role. `groups` and `users` admit further callers. */
  readonly roles?: readonly R[] | undefined
  /** Admits callers in one of these groups. */
  readonly groups?: readonly string[] | undefined
  /** Admits the callers with these usernames. */
  readonly users?: readonly string[] | undefined
  /** Also admits machines, with an access token of the provider as `Authorization: Bearer`. */
  readonly bearer?: boolean | undefined
  /** The audience of such a token; by default BEARER_AUDIENCE. `any` accepts introspected tokens of every client. */
  readonly audience?: string | readonly string[] | undefined
  /** Such a token needs all of these scopes. */
  readonly scopes?: readonly string[] | undefined
  /** Also admits programs with a key: `true` for keys of `machines`, `personal` also for keys that users have created. */
  readonly keys?: boolean | 'personal' | undefined
  /** Admits everyone, signed in or not. Replaces `roles`, `groups` and `users`. */
  readonly public?: true | undefined
  /** Only logs which requests it would have refused. */
  readonly shadow?: boolean | undefined
}

/** A row of `roles`: a user who matches everything that it names gets the role. */
export interface RoleConfig<R extends Role = Role> {
  /** The role that the row gives. */
  readonly role: R
  /** With several providers, the ones whose users it applies to; by default the main one. */
  readonly provider?: readonly string[] | undefined
  /** The user has one of these usernames. */
  readonly username?: readonly string[] | undefined
  /** The user is in one of these groups. */
  readonly groups?: readonly string[] | undefined
  /** Keyed by the path of any claim: `{ 'dept.name': ['财务部'] }`. */
  readonly claim?: Accepted | undefined
}

/** `R` are the roles that it names, `F` the fields of the user info that it maps. */
export interface Config<R extends Role = Role, F extends string = string> {
  /** The JSON Schema of this file, for editors. It has no effect. */
  readonly $schema?: string | undefined
  /** The identity provider: changes to its preset, or only the name of a preset. */
  readonly provider?: ProviderConfig<F> | string | undefined
  /** Several identity providers, keyed by an id of your choice; the first is the main one. */
  readonly providers?: Readonly<Record<string, ProviderConfig<F>>> | undefined
  /** The first row that fits gives the role; without one it is `common`. */
  readonly roles?: readonly RoleConfig<R>[] | undefined
  /** Who may see what. The most specific rule decides; without one, every signed-in user is admitted. */
  readonly rules?: readonly Rule<NoInfer<R> | DefaultRole | typeof ANY_ROLE>[] | undefined
  /** Programs with a key, for rules with `keys`. */
  readonly machines?: readonly MachineConfig[] | undefined
  /** Applications by path prefix, for paths that do not go to UPSTREAM. */
  readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
  /** Further host names that share the sign-in, each with its own applications and rules: `{ 'wiki.example.com': { upstream: '…' } }`. */
  readonly hosts?: Readonly<Record<string, HostConfig<NoInfer<R>>>> | undefined
  /** Texts of the pages, in place of the built-in ones: `{ 'login.title': '员工登录' }`. */
  readonly words?: SentenceConfig | undefined
  /** Further languages with all of their sentences, or single sentences of a built-in language. */
  readonly languages?: Readonly<Record<string, SentenceConfig>> | undefined
  /** A sentence and links under the button of the login page. */
  readonly loginPage?: LoginPageConfig | undefined
  /** Users of the development provider, in place of its own; applies only where that runs. */
  readonly devProvider?: DevProviderConfig | undefined
}

/** Keyed by name, as in src/text/en.ts: one text, or one for each plural form of its `{count}`. */
export type SentenceConfig = Readonly<Record<string, Sentence>>

/** A host name besides that of BASE_URL. Without an application it is used with forward-auth. */
export interface HostConfig<R extends Role = Role> extends PortalKeys {
  /** The application of the host, as UPSTREAM is that of BASE_URL. */
  readonly upstream?: string | UpstreamConfig | undefined
  /** Applications by path prefix, for paths that do not go to `upstream`. */
  readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
  /** The rules of the host; those at the top level are only for BASE_URL. */
  readonly rules?: readonly Rule<R | DefaultRole | typeof ANY_ROLE>[] | undefined
}

/** All applications of a host, by path prefix. */
export function upstreamsOfHost({ upstream, upstreams }: HostConfig): NonNullable<Config['upstreams']> {
  return { ...(upstream !== undefined && { '/': upstream }), ...upstreams }
}

/** The rules of BASE_URL and of all hosts together. */
export function countRules({ rules = [], hosts = {} }: Config): number {
  return Object.values(hosts).reduce((sum, host) => sum + (host.rules?.length ?? 0), rules.length)
}

/** The rules of BASE_URL and of all hosts, without shadow rules. */
export function effectiveRules({ rules = [], hosts = {} }: Pick<Config, 'rules' | 'hosts'>): readonly Rule[] {
  return [...rules, ...Object.values(hosts).flatMap(host => host.rules ?? [])].filter(({ shadow }) => !shadow)
}

/** Compared letter by letter. */
const name = z
  .string()
  .min(1)
  .refine(text => !/[*]|^\^/.test(text), issueText(phrase('config.name_not_a_pattern')))

const names = z.array(name).min(1, issueText(phrase('config.at_least_one_name')))

/** The methods that Node accepts: a rule for any other method would cover nothing. */
const method = z
  .string()
  .refine(text => text !== '*' && !/^(all|any)$/i.test(text), issueText(phrase('config.methods_left_out')))
  .superRefine((text, context) => {
    if (!/^[A-Z-]+$/.test(text)) return void context.addIssue(issueText(phrase('config.methods_in_capitals')))
    const likely = closestName(text, METHODS)
    if (!METHODS.includes(text))
      context.addIssue(
        issueText(
          likely === undefined ? phrase('config.no_such_method') : phrase('config.no_such_method_likely', { likely }),
        ),
      )
  })
  .meta({ pattern: '^[A-Z-]+$' })

/** The `audience` of a rule that accepts introspected tokens of every client. */
export const ANY_AUDIENCE = 'any'

/** The audience of a token; a wildcard would match no token. */
const tokenAudience = audience.check.refine(
  text => !text.includes('*'),
  issueText(phrase('config.audience_without_star')),
)

/** RFC 6749, 3.3. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, issueText(phrase('config.one_scope')))

const SCOPES_EXPECTED = issueText(phrase('config.scope_list'))

const role = z
  .strictObject({
    role: z.string().regex(/^[\w.:-]{1,100}$/, issueText(phrase('config.role_name'))),
    provider: names.optional(),
    username: names.optional(),
    groups: names.optional(),
    claim: accepted.optional(),
  })
  .refine(({ username, groups, claim }) => (username ?? groups ?? claim) !== undefined, {
    message: issueText(phrase('config.role_for_whom')),
  })

/** Part of a user's identity, and of what a form sends. */
const providerId = z
  .string()
  .regex(/^[a-z][a-z\d-]{0,39}$/, issueText(phrase('config.provider_id')))
  .refine(id => id !== 'default' && id !== 'machine', issueText(phrase('config.reserved_name')))

const rule = z
  .strictObject({
    path: pathPrefix(phrase('config.a_rule')),
    exact: z.boolean().optional(),
    methods: z
      .array(method)
      .min(1)
      .refine(methods => !methods.includes('HEAD') || methods.includes('GET'), issueText(phrase('config.head_is_get')))
      .optional(),
    roles: z
      .array(z.string().min(1))
      .min(1, issueText(phrase('config.at_least_one_role')))
      .optional(),
    groups: names.optional(),
    users: names.optional(),
    bearer: z.boolean().optional(),
    audience: z
      .union([tokenAudience, z.array(tokenAudience).min(1)])
      .refine(
        given => !Array.isArray(given) || !given.includes(ANY_AUDIENCE),
        issueText(phrase('config.audience_alone', { audience: ANY_AUDIENCE })),
      )
      .optional(),
    scopes: z.array(scope, SCOPES_EXPECTED).min(1, SCOPES_EXPECTED).optional(),
    keys: z.literal([true, false, 'personal'], issueText(phrase('config.keys_value'))).optional(),
    public: z.literal(true).optional(),
    shadow: z.boolean().optional(),
    ...conditionShapes,
  })
  .refine(({ roles, groups, users, public: everybody }) => !(roles ?? groups ?? users) !== (everybody === undefined), {
    error: ({ input }) =>
      issueText(hasPublic(input) ? phrase('config.who_and_public') : phrase('config.who_or_public')),
  })
  .refine(({ bearer, public: everybody }) => !(bearer && everybody), {
    message: issueText(phrase('config.bearer_and_public')),
  })
  .refine(({ keys, public: everybody }) => !(keys && everybody), {
    message: issueText(phrase('config.keys_and_public')),
  })
  .refine(({ bearer, audience }) => bearer || audience === undefined, {
    message: issueText(phrase('config.audience_needs_bearer')),
  })
  .refine(({ bearer, scopes }) => bearer || scopes === undefined, {
    message: issueText(phrase('config.scopes_need_bearer')),
  })
  .refine(rule => !rule.public || conditionsOfUsers(rule).length === 0, {
    error: ({ input }) =>
      issueText(phrase('config.public_conditions', { conditions: conditionsOfUsers(Object(input)) })),
  })

function hasPublic(rule: unknown): boolean {
  return Object.hasOwn(Object(rule), 'public')
}

/** Otherwise zod would only report that the key is invalid. */
const keyMessage = (issue: z.core.$ZodRawIssue) => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined)

const rulesShape = z
  .array(rule)
  .superRefine(refuseDuplicates)
  .meta({ examples: [[{ path: '/admin', roles: ['developer'] }]] })
const upstreamsShape = z
  .record(pathPrefix(phrase('config.a_prefix')), upstreamOrObject, { error: keyMessage })
  .meta({ examples: [{ '/api': 'http://127.0.0.1:9000' }] })

const host = z
  .strictObject({
    upstream: upstreamOrObject.optional(),
    upstreams: upstreamsShape.optional(),
    rules: rulesShape.optional(),
    ...portalShape,
  })
  .refine(({ upstream, upstreams }) => upstream === undefined || upstreams?.['/'] === undefined, {
    message: issueText(phrase('config.upstream_twice')),
  })

export const configShape = z
  .strictObject({
    provider: z.union([z.string().min(1), providerObject]).optional(),
    providers: z.record(providerId, providerObject, { error: keyMessage }).meta({ minProperties: 1 }).optional(),
    roles: z
      .array(role)
      .meta({ examples: [[{ role: 'developer', username: ['admin'] }]] })
      .optional(),
    rules: rulesShape.optional(),
    machines: machinesShape.meta({ examples: [[{ name: 'backup', keySha256: '…' }]] }).optional(),
    upstreams: upstreamsShape.optional(),
    hosts: z
      .record(hostName, host, { error: keyMessage })
      .meta({ examples: [{ 'wiki.example.com': { upstream: 'http://127.0.0.1:8081' } }] })
      .optional(),
    words: wordsShape.optional(),
    languages: languagesShape.optional(),
    loginPage: loginPageShape.optional(),
    devProvider: devProviderShape
      .meta({ examples: [{ users: [{ username: 'ann', groups: ['finance'] }] }] })
      .optional(),
    $schema: z.string().optional(),
  })
  .superRefine(refuseUnknownNames)

/** The keys that a configuration can have. */
export const CONFIG_NAMES: readonly string[] = Object.keys(configShape.shape).filter(name => name !== '$schema')

/** Functions of the application. Only code can contain them, and createMenshen takes them. */
const HOOK_NAMES: readonly string[] = ['onSignIn', 'onSignOut']

/** Returns the configuration, or all of its problems. */
export function inspectConfig(
  config: unknown,
): { readonly config: Config } | { readonly problems: readonly ShapeProblem[] } {
  const result = checkShape(configShape, config)
  if ('problems' in result) return { problems: result.problems.map(withAdvice) }
  const { $schema: _, ...checked } = result.data
  return { config: checked }
}

/** Advises on a key at the top level that belongs elsewhere: a hook, or a setting. */
function withAdvice(problem: ShapeProblem): ShapeProblem {
  const { path, key } = problem
  if (path !== '' || key === undefined) return problem
  const advice = HOOK_NAMES.includes(key) ? phrase('config.hook', { key }) : settingAdvice(key)
  return advice ? { ...problem, message: phraseIn('en', advice), phrase: advice } : problem
}

function settingAdvice(key: string): Phrase | undefined {
  const setting = closestName(key, CONFIG_NAMES) === undefined ? settingNamed(key) : undefined
  return setting === undefined
    ? undefined
    : withFullStop(phrase('config.key_is_setting', { key: JSON.stringify(key), setting }))
}

/** Refuses a configuration with all of its problems. `source` is a file or a function, `whole` its name for the configuration. */
export function checkConfig(config: unknown, source: string, whole: string | Phrase): Config {
  const result = inspectConfig(config)
  if ('config' in result) return result.config
  throw new MenshenError(
    'bad_settings',
    result.problems.map(({ path, phrase: given }) => problemAt(source, path, given, path || whole)),
  )
}

// Two rules for the same requests: it would be unclear which of them decides.

export function refuseDuplicates(rules: readonly Rule[], context: z.RefinementCtx): void {
  for (const [i, rule] of rules.entries()) {
    const first = rules.findIndex(other => isDuplicate(rule, other))
    if (first < i) context.addIssue({ code: 'custom', path: [i], message: issueText(duplicatePhrase(rule, first)) })
  }
}

/** A rule and a shadow rule for the same requests are not duplicates. */
function isDuplicate(one: Rule, other: Rule): boolean {
  const isAlike = one.path === other.path && !one.exact === !other.exact && !one.shadow === !other.shadow
  if (!isAlike || !one.methods || !other.methods) return isAlike && one.methods === other.methods
  return one.methods.some(method => other.methods?.includes(method))
}

function duplicatePhrase({ path, methods }: Rule, first: number): Phrase {
  const what = methods ? phrase('config.methods_of_path', { methods, path }) : path
  return phrase('config.duplicate_rule', { first, what })
}

// Names that do not exist: a role that no row gives, a provider that is not configured. A misspelt rule would refuse everyone.

type Refuse = (path: PropertyKey[], given: Phrase) => void

export function refuseUnknownNames(config: Config, context: z.RefinementCtx): void {
  const { provider, providers, roles = [] } = config
  const refuse: Refuse = (path, given) => context.addIssue({ code: 'custom', path, message: issueText(given) })
  if (provider !== undefined && providers !== undefined) refuse(['provider'], phrase('config.provider_or_providers'))
  const ids = Object.keys(providers ?? {})
  if (providers !== undefined && ids.length === 0) refuse(['providers'], phrase('config.at_least_one_provider'))
  for (const [i, row] of roles.entries())
    for (const [j, id] of (row.provider ?? []).entries())
      if (!ids.includes(id)) refuse(['roles', i, 'provider', j], unknownProvider(id, ids))
  for (const { path, prefix, option } of listUpstreams(config))
    if (prefix === '/' && typeof option === 'object' && option.stripPrefix)
      refuse([...path, 'stripPrefix'], phrase('config.no_prefix_to_strip'))
  refuseUnknownFields(config, refuse)
  refuseForeignStarts(config, refuse)
  const known = [...new Set([...DEFAULT_ROLE_NAMES, ...roles.map(({ role }) => role), ANY_ROLE])]
  for (const { path, rules = [] } of ruleListsOf(config))
    for (const [i, rule] of rules.entries())
      for (const [j, role] of (rule.roles ?? []).entries())
        if (!known.includes(role)) refuse([...path, i, 'roles', j], unknownRole(role, known))
}

/** Rules, and where they are in the configuration. */
interface RuleList extends Pick<Config, 'rules'> {
  readonly path: PropertyKey[]
}

/** The rules of BASE_URL, and those of each of `hosts`. */
function ruleListsOf({ rules, hosts = {} }: Config): RuleList[] {
  const ofHosts = Object.entries(hosts).map(([name, { rules }]) => ({ path: ['hosts', name, 'rules'], rules }))
  return [{ path: ['rules'], rules }, ...ofHosts]
}

function unknownProvider(id: string, known: readonly string[]): Phrase {
  const likely = closestName(id, known)
  const ids = quoted(known)
  if (likely !== undefined) return phrase('config.provider_name_likely', { ids, likely: JSON.stringify(likely) })
  return known.length > 0 ? phrase('config.provider_name_of', { ids }) : phrase('config.provider_name')
}

function unknownRole(role: string, names: readonly string[]): Phrase {
  const likely = closestName(role, names)
  const known = quoted(names)
  return likely === undefined
    ? phrase('config.role_not_given', { known })
    : phrase('config.role_not_given_likely', { known, likely: JSON.stringify(likely) })
}

function quoted(names: readonly string[]): string[] {
  return names.map(name => JSON.stringify(name))
}
