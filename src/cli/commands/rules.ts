// `menshen rules check PATH --role ROLE` reports what would happen and which rule decides; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { z } from 'zod'
import type { DestinationProblem } from '../../access/affected-paths.ts'
import type { PathProblem } from '../../access/request-path.ts'
import { DEFAULT_ROLES, roleNamesIn, roleOf, rolesFor } from '../../access/roles.ts'
import {
  answerRuleQuery,
  type RuleQuery,
  type RuleVerdict,
  readTime,
  subjectOf,
  type UncheckedCondition,
  VISITOR,
} from '../../access/rule-query.ts'
import { createRules, isClosed, type Rules } from '../../access/rules.ts'
import { type Config, type RoleConfig, type Rule, upstreamsOfHost } from '../../config/file.ts'
import { issueText } from '../../config/issue-text.ts'
import { MACHINE_PREFIX } from '../../config/machines.ts'
import type { Environment } from '../../config/settings.ts'
import { checkShape } from '../../config/shape-problems.ts'
import { MenshenError } from '../../errors.ts'
import {
  type OperatorLanguage,
  type Phrase,
  phrase,
  phrasedError,
  phrasedProblem,
  phraseIn,
  quoted,
} from '../../text/text.ts'
import { METHODS } from '../../util/node-http.ts'
import { safeText } from '../../util/safe-text.ts'
import type { Paint } from '../terminal.ts'
import {
  operatorLanguage,
  readCommandArguments,
  refuseArgument,
  suggestName,
  UsageError,
  usageError,
} from '../usage.ts'
import { COMMANDS } from './table.ts'

const ROW = COMMANDS.rules
const COLOURS = {
  admitted: 'green',
  refused: 'red',
  login: 'yellow',
  step_up: 'yellow',
  bad_request: 'red',
  uri_too_long: 'red',
  own: 'dim',
} as const

/** One value or several. */
const references = z
  .union([z.string(), z.array(z.string())])
  .transform(given => (Array.isArray(given) ? given : [given]))

interface RuleTestOutcome {
  readonly lines: readonly string[]
  readonly ok: boolean
}

const expectations = z.array(
  z.strictObject({
    path: textWithout(pathProblem),
    role: z.string().optional(),
    groups: z.array(z.string()).default([]),
    user: z.string().default(''),
    method: z.string().toUpperCase().pipe(textWithout(methodProblem)).default('GET'),
    from: textWithout(addressProblem).optional(),
    at: z
      .string()
      .transform((text, context) => {
        const at = readTime(text)
        if (at === undefined) context.addIssue(issueText(timeProblem(text)))
        return at ?? z.NEVER
      })
      .optional(),
    destination: textWithout(pathProblem).optional(),
    depth: z.enum(['0', '1', 'infinity']).optional(),
    authAge: z.number().min(0).optional(),
    acr: references.optional(),
    amr: references.optional(),
    host: z.string().optional(),
    expect: z.enum(['admitted', 'refused', 'login', 'step_up', 'bad_request', 'uri_too_long', 'own']),
  }),
)

function textWithout(problemOf: (text: string) => Phrase | undefined) {
  return z.string().superRefine((text, context) => {
    const problem = problemOf(text)
    if (problem) context.addIssue(issueText(problem))
  })
}

export function runRulesCommand(
  args: readonly string[],
  given: readonly Rule[],
  roles: readonly RoleConfig[] = DEFAULT_ROLES,
  paint: Paint = (_colour, text) => text,
  signInPaths?: ReadonlySet<string>,
  mainProvider?: string,
  upstreamPrefixes?: readonly string[],
  hosts: NonNullable<Config['hosts']> = {},
  machines: NonNullable<Config['machines']> = [],
  environment: Environment = {},
): RuleTestOutcome {
  const rules = createRules(given, upstreamPrefixes)
  const evaluateQuery: EvaluateQuery = query =>
    answerRuleQuery(query.host === undefined ? rules : rulesOfHost(hosts, query.host), query, signInPaths)
  const derive: Derive = asked => withRole(withMachineGroups(asked, machines), roles, mainProvider)
  const known = [VISITOR, ...roleNamesIn(roles)]
  const { values, positionals } = readCommandArguments(args, ROW)
  const [verb, subject, ...rest] = positionals
  if (verb !== 'check' && verb !== 'test')
    throw verb === undefined ? usageError(phrase('cli.nothing_asked'), ROW) : refuseArgument(verb, ROW)
  if (subject === undefined)
    throw usageError(phrase('cli.argument_missing', { name: verb === 'check' ? 'PATH' : 'FILE' }), ROW)
  if (rest[0] !== undefined) throw refuseArgument(rest[0], ROW)
  const { role, group: groups, user, method, host, destination, depth } = values
  const language = operatorLanguage(values.language, environment, ROW)
  if (verb === 'test') return runTable(evaluateQuery, derive, subject, known, Object.keys(hosts), paint, language)
  const query = derive({
    path: subject,
    role,
    groups,
    user,
    method: method.toUpperCase(),
    host,
    destination,
    depth,
    ...readConditionContext(values),
  })
  if (host !== undefined && !Object.hasOwn(hosts, host)) throw new UsageError(unknownHost(host, Object.keys(hosts)))
  if (role !== undefined && !known.includes(role)) throw new UsageError(unknownRole(role, known))
  const problem =
    pathProblem(subject) ??
    methodProblem(query.method) ??
    (destination === undefined ? undefined : pathProblem(destination)) ??
    (depth === undefined || /^(?:0|1|infinity)$/.test(depth) ? undefined : depthProblem(depth))
  assertNoProblem(problem)
  return { lines: [describe(evaluateQuery, query, paint, language)], ok: true }
}

interface ConditionOptions {
  readonly from?: string | undefined
  readonly at?: string | undefined
  readonly 'auth-age'?: string | undefined
  readonly acr: readonly string[]
  readonly amr: readonly string[]
}

function readConditionContext(values: ConditionOptions): Pick<RuleQuery, 'from' | 'at' | 'authAge' | 'acr' | 'amr'> {
  const { from, at: time, 'auth-age': age, acr, amr } = values
  const at = time === undefined ? undefined : readTime(time)
  const problem =
    (from === undefined ? undefined : addressProblem(from)) ??
    (time === undefined || at !== undefined ? undefined : timeProblem(time)) ??
    (age === undefined || /^\d{1,10}$/.test(age) ? undefined : ageProblem(age))
  assertNoProblem(problem)
  return { from, at, authAge: age === undefined ? undefined : Number(age), acr, amr }
}

function assertNoProblem(problem: Phrase | undefined): void {
  if (problem) throw new UsageError(problem)
}

function addressProblem(text: string): Phrase | undefined {
  return isIP(text) ? undefined : phrase('cli.bad_address', { text: shorten(text) })
}

function timeProblem(text: string): Phrase {
  return phrase('cli.bad_moment', { text: shorten(text) })
}

function depthProblem(text: string): Phrase {
  return phrase('cli.bad_depth', { text: shorten(text) })
}

function ageProblem(text: string): Phrase {
  return phrase('cli.bad_age', { text: shorten(text) })
}

/** The rules of one of `hosts`. */
function rulesOfHost(hosts: NonNullable<Config['hosts']>, name: string): Rules {
  const host = hosts[name] ?? {}
  return createRules(host.rules ?? [], Object.keys(upstreamsOfHost(host)))
}

/** A query at one of `hosts`; without a host, at BASE_URL. */
interface HostQuery extends RuleQuery {
  readonly host?: string | undefined
}

type EvaluateQuery = (query: HostQuery) => RuleVerdict
/** `isDerived`: the role was not given, but follows from `roles`. */
type DerivedQuery = HostQuery & { readonly isDerived?: true }
type Derive = (asked: Omit<HostQuery, 'role'> & { readonly role?: string | undefined }) => DerivedQuery

/** A machine has the groups of its row unless others are given. */
function withMachineGroups(
  asked: Parameters<Derive>[0],
  machines: NonNullable<Config['machines']>,
): Parameters<Derive>[0] {
  const machine = machines.find(({ name }) => asked.user === MACHINE_PREFIX + name)
  return machine && asked.groups.length === 0 ? { ...asked, groups: machine.groups ?? [] } : asked
}

/** Treats the user as one of the main provider. Claims are unknown here, so a row that needs them never matches. */
function withRole(
  { role, ...asked }: Parameters<Derive>[0],
  roles: readonly RoleConfig[],
  provider: string | undefined,
): DerivedQuery {
  if (role !== undefined) return { ...asked, role }
  if (asked.user === '' && asked.groups.length === 0) return { ...asked, role: VISITOR }
  const known = { provider, username: asked.user, groups: asked.groups, claims: {} }
  const rows = rolesFor(roles, provider === undefined ? [] : [provider])
  return { ...asked, role: roleOf(known, rows), isDerived: true }
}

function runTable(
  evaluateQuery: EvaluateQuery,
  derive: Derive,
  file: string,
  known: readonly string[],
  hosts: readonly string[],
  paint: Paint,
  language: OperatorLanguage,
): RuleTestOutcome {
  const table = readTable(file)
  const oddHost = table.map(({ host }) => host).find(host => host !== undefined && !hosts.includes(host))
  if (oddHost !== undefined) throw cannotBeUsed(file, unknownHost(oddHost, hosts))
  const odd = table.map(({ role }) => role).find(role => role !== undefined && !known.includes(role))
  if (odd !== undefined) throw cannotBeUsed(file, unknownRole(odd, known))
  const failures = table.flatMap(({ expect, ...asked }) => {
    const query = derive(asked)
    const { outcome } = evaluateQuery(query)
    if (outcome === expect) return []
    const line = describe(evaluateQuery, query, paint, language)
    return [phraseIn(language, phrase('cli.rules_expected', { outcome: phrase(`cli.outcome_${expect}`), line }))]
  })
  const passed = table.length - failures.length
  return {
    lines: [...failures, phraseIn(language, phrase('cli.rules_summary', { passed, failed: failures.length }))],
    ok: failures.length === 0,
  }
}

function readTable(file: string): z.infer<typeof expectations> {
  const result = checkShape(expectations, readJson(file))
  if ('data' in result) return result.data
  throw new MenshenError(
    'bad_settings',
    result.problems.map(({ path, phrase: message }) =>
      phrasedProblem({ path }, phrase('cli.file_unusable', { file, why: inCase(path, message) })),
    ),
  )
}

/** `4.role` is the field of the fifth case. */
function inCase(path: string, message: Phrase): Phrase {
  if (path === '') return message
  const [index, ...field] = path.split('.')
  const values = { number: Number(index) + 1, message }
  return field.length === 0
    ? phrase('cli.rules_case', values)
    : phrase('cli.rules_case_field', { ...values, field: field.join('.') })
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw cannotBeUsed(file, phrase('cli.expected_json', { reason: (error as Error).message }))
  }
}

function cannotBeUsed(file: string, why: Phrase): MenshenError {
  return phrasedError('bad_settings', phrase('cli.file_unusable', { file, why }))
}

/** A sentence without its first capital; `undefined` if there is no problem. */
function pathProblem(path: string): Phrase | undefined {
  if (path.startsWith('/')) return undefined
  return phrase('cli.bad_path', { path: shorten(path), likely: shorten(`/${pathIn(path)}`) })
}

/** The path of the text, which may be a whole address. */
function pathIn(text: string): string {
  return URL.canParse(text) ? new URL(text).pathname.slice(1) : text
}

function methodProblem(method: string): Phrase | undefined {
  if (METHODS.includes(method)) return undefined
  const likely = suggestName(method, METHODS)
  return likely === undefined
    ? phrase('cli.bad_method', { method: shorten(method) })
    : phrase('cli.bad_method_likely', { method: shorten(method), likely })
}

const MAX_SHOWN_LENGTH = 100

/** Shortened and in quotes, for a message. */
function shorten(text: string): string {
  return JSON.stringify(text.slice(0, MAX_SHOWN_LENGTH))
}

function unknownRole(role: string, known: readonly string[]): Phrase {
  return phrase('cli.no_such_role', { role: JSON.stringify(role), known })
}

function unknownHost(host: string, hosts: readonly string[]): Phrase {
  return hosts.length === 0
    ? phrase('cli.no_hosts', { host: shorten(host) })
    : phrase('cli.no_such_host', { host: shorten(host), known: hosts })
}

function describe(evaluateQuery: EvaluateQuery, query: DerivedQuery, paint: Paint, language: OperatorLanguage): string {
  const verdict = evaluateQuery(query)
  const said = (given: Phrase) => phraseIn(language, given)
  return said(
    phrase('cli.rules_line', {
      request: safeText(`${query.method} ${query.host ?? ''}${query.path}`),
      asker: safeText(said(describeCaller(query))),
      outcome: paint(COLOURS[verdict.outcome], said(phrase(`cli.outcome_${verdict.outcome}`))),
      reason: safeText(said(reasonOf(verdict))),
    }),
  )
}

function describeCaller(query: DerivedQuery): Phrase {
  const { role = VISITOR, groups = [], username = '' } = subjectOf(query) ?? {}
  const bare = query.isDerived ? phrase('cli.asker_by_roles', { role }) : quoted(role)
  const named = username ? phrase('cli.asker_user', { asker: bare, user: username }) : bare
  if (groups.length === 0) return named
  const names = groups.map(name => quoted(name)).reduce((one, other) => phrase('one_and_other', { one, other }))
  return phrase('cli.asker_groups', { asker: named, groups: names })
}

const PATH_PROBLEMS: readonly string[] = [
  'no_single_slash_at_start',
  'forbidden_character',
  'broken_encoding',
  'dot_segment',
  'too_many_interpretations',
  'other_upstream',
  'too_long',
] satisfies DestinationProblem[]

function destinationText(problem: DestinationProblem): Phrase {
  return PATH_PROBLEMS.includes(problem) ? phrase(`cli.path_${problem as PathProblem}`) : phrase('cli.path_not_a_path')
}

const UNCHECKED_CONDITIONS: Readonly<Record<UncheckedCondition, string>> = {
  networks: 'networks (--from)',
  hours: 'hours (--at)',
  maxAge: 'maxAge (--auth-age)',
  origin: 'origin',
}

function reasonOf(verdict: RuleVerdict): Phrase {
  if ('destinationProblem' in verdict)
    return phrase('cli.because_destination', { problem: destinationText(verdict.destinationProblem) })
  if (verdict.outcome === 'bad_request')
    return phrase('cli.because_ambiguous', { problem: phrase(`cli.path_${verdict.problem}`) })
  if (verdict.outcome === 'uri_too_long') return phrase('cli.because_too_long')
  if (verdict.outcome === 'own') return phrase('cli.because_own')
  const { rule, interpretation = '', isBelow, destination, shadow, condition, unchecked } = verdict
  const withShadow = (reason: Phrase) =>
    shadow
      ? phrase('cli.with_shadow', {
          reason,
          outcome: phrase(`cli.outcome_${shadow.outcome}`),
          rule: JSON.stringify(shadow.rule),
        })
      : reason
  if (isClosed(rule)) return withShadow(phrase('cli.because_closed', { interpretation }))
  const text = JSON.stringify(rule)
  const parts: ((reason: Phrase) => Phrase)[] = []
  const path = destination === undefined ? phrase('cli.the_path') : phrase('cli.the_destination', { destination })
  if (isBelow) parts.push(reason => phrase('cli.with_below', { reason, path }))
  else if (destination !== undefined) parts.push(reason => phrase('cli.with_destination', { reason, path }))
  if (interpretation) parts.push(reason => phrase('cli.with_interpretation', { reason, interpretation }))
  const names = unchecked?.map(name => UNCHECKED_CONDITIONS[name]).join(', ')
  if (names) parts.push(reason => phrase('cli.with_unsaid', { reason, names }))
  const by = condition
    ? phrase('cli.by_rule_condition', { rule: text, condition })
    : phrase('cli.by_rule', { rule: text })
  return withShadow(parts.reduce((reason, add) => add(reason), by))
}
