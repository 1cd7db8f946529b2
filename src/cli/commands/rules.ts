// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { METHODS } from 'node:http'
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
import { MACHINE_PREFIX } from '../../config/machines.ts'
import { checkShape } from '../../config/shape-problems.ts'
import { MenshenError } from '../../errors.ts'
import { safeText } from '../../util/safe-text.ts'
import type { Paint } from '../terminal.ts'
import { likelyMeant, readCommandArguments, refuseArgument, UsageError, usageError } from '../usage.ts'
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
        if (at === undefined) context.addIssue(timeProblem(text))
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

function textWithout(problemOf: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const problem = problemOf(text)
    if (problem) context.addIssue(problem)
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
): RuleTestOutcome {
  const rules = createRules(given, upstreamPrefixes)
  const judgeQuery: Judge = query =>
    answerRuleQuery(query.host === undefined ? rules : rulesOfHost(hosts, query.host), query, signInPaths)
  const derive: Derive = asked => withRole(withMachineGroups(asked, machines), roles, mainProvider)
  const known = [VISITOR, ...roleNamesIn(roles)]
  const { values, positionals } = readCommandArguments(args, ROW)
  const [verb, subject, ...rest] = positionals
  if (verb !== 'check' && verb !== 'test')
    throw verb === undefined ? usageError('A verb is missing', ROW) : refuseArgument(verb, ROW)
  if (subject === undefined) throw usageError(`There is no ${verb === 'check' ? 'PATH' : 'FILE'}`, ROW)
  if (rest[0] !== undefined) throw refuseArgument(rest[0], ROW)
  const { role, group: groups, user, method, host, destination, depth } = values
  if (verb === 'test') return runTable(judgeQuery, derive, subject, known, Object.keys(hosts), paint)
  const query = derive({
    path: subject,
    role,
    groups,
    user,
    method: method.toUpperCase(),
    host,
    destination,
    depth,
    ...readCircumstances(values),
  })
  if (host !== undefined && !Object.hasOwn(hosts, host)) throw new UsageError(unknownHost(host, Object.keys(hosts)))
  if (role !== undefined && !known.includes(role)) throw new UsageError(unknownRole(role, known))
  const problem =
    pathProblem(subject) ??
    methodProblem(query.method) ??
    (destination === undefined ? undefined : pathProblem(destination)) ??
    (depth === undefined || /^(?:0|1|infinity)$/.test(depth) ? undefined : depthProblem(depth))
  assertNoProblem(problem)
  return { lines: [describe(judgeQuery, query, paint)], ok: true }
}

interface CircumstanceOptions {
  readonly from?: string | undefined
  readonly at?: string | undefined
  readonly 'auth-age'?: string | undefined
  readonly acr: readonly string[]
  readonly amr: readonly string[]
}

function readCircumstances(values: CircumstanceOptions): Pick<RuleQuery, 'from' | 'at' | 'authAge' | 'acr' | 'amr'> {
  const { from, at: time, 'auth-age': age, acr, amr } = values
  const at = time === undefined ? undefined : readTime(time)
  const problem =
    (from === undefined ? undefined : addressProblem(from)) ??
    (time === undefined || at !== undefined ? undefined : timeProblem(time)) ??
    (age === undefined || /^\d{1,10}$/.test(age) ? undefined : ageProblem(age))
  assertNoProblem(problem)
  return { from, at, authAge: age === undefined ? undefined : Number(age), acr, amr }
}

function assertNoProblem(problem: string | undefined): void {
  if (problem) throw new UsageError(`${problem[0]?.toUpperCase()}${problem.slice(1)}`)
}

function addressProblem(text: string): string | undefined {
  if (isIP(text)) return undefined
  return `${shorten(text)} is not an address; expected one such as 192.0.2.7 or 2001:db8::7.`
}

function timeProblem(text: string): string {
  return `${shorten(text)} is not a time; expected one such as 2026-11-16T09:00, or 2026-11-16T09:00+08:00.`
}

function depthProblem(text: string): string {
  return `${shorten(text)} is not a depth; expected 0, 1 or infinity.`
}

function ageProblem(text: string): string {
  return `${shorten(text)} is not an age; expected whole seconds, for example 300.`
}

/** The rules of one of `hosts`. */
function rulesOfHost(hosts: NonNullable<Config['hosts']>, name: string): Rules {
  const host = hosts[name] ?? {}
  return createRules(host.rules ?? [], Object.keys(upstreamsOfHost(host)))
}

/** At one of `hosts`; without a host, at BASE_URL. */
interface HostQuery extends RuleQuery {
  readonly host?: string | undefined
}

type Judge = (query: HostQuery) => RuleVerdict
/** `isDerived` if the role is not what was said but what `roles` give to this user. */
type DerivedQuery = HostQuery & { readonly isDerived?: true }
type Derive = (asked: Omit<HostQuery, 'role'> & { readonly role?: string | undefined }) => DerivedQuery

/** A machine has the groups of its row, unless others are given. */
function withMachineGroups(
  asked: Parameters<Derive>[0],
  machines: NonNullable<Config['machines']>,
): Parameters<Derive>[0] {
  const machine = machines.find(({ name }) => asked.user === MACHINE_PREFIX + name)
  return machine && asked.groups.length === 0 ? { ...asked, groups: machine.groups ?? [] } : asked
}

/** A user of the main provider. Claims are not known here: a row that wants them gives its role to nobody. */
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
  judgeQuery: Judge,
  derive: Derive,
  file: string,
  known: readonly string[],
  hosts: readonly string[],
  paint: Paint,
): RuleTestOutcome {
  const table = readTable(file)
  const oddHost = table.map(({ host }) => host).find(host => host !== undefined && !hosts.includes(host))
  if (oddHost !== undefined) throw cannotBeUsed(file, unknownHost(oddHost, hosts))
  const odd = table.map(({ role }) => role).find(role => role !== undefined && !known.includes(role))
  if (odd !== undefined) throw cannotBeUsed(file, unknownRole(odd, known))
  const failures = table.flatMap(({ expect, ...asked }) => {
    const query = derive(asked)
    const { outcome } = judgeQuery(query)
    return outcome === expect ? [] : [`expected ${expect}: ${describe(judgeQuery, query, paint)}`]
  })
  return {
    lines: [...failures, `${table.length - failures.length} passed, ${failures.length} failed`],
    ok: failures.length === 0,
  }
}

function readTable(file: string): z.infer<typeof expectations> {
  const result = checkShape(expectations, readJson(file))
  if ('data' in result) return result.data
  throw new MenshenError(
    'bad_settings',
    result.problems.map(({ path, message }) => ({
      path,
      message: `${file} cannot be used: ${path && `${path}: `}${message}`,
    })),
  )
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw cannotBeUsed(file, `${(error as Error).message}; expected a JSON array as menshen help rules shows it.`)
  }
}

function cannotBeUsed(file: string, why: string): MenshenError {
  return new MenshenError('bad_settings', `${file} cannot be used: ${why}`)
}

/** A sentence without its first capital; `undefined` if there is nothing to say. */
function pathProblem(path: string): string | undefined {
  if (path.startsWith('/')) return undefined
  return `a path begins with /, and ${shorten(path)} does not; did you mean ${shorten(`/${pathIn(path)}`)}?`
}

/** Of a whole address the path. */
function pathIn(text: string): string {
  return URL.canParse(text) ? new URL(text).pathname.slice(1) : text
}

function methodProblem(method: string): string | undefined {
  if (METHODS.includes(method)) return undefined
  const likely = likelyMeant(method, METHODS)
  const remedy = likely === undefined ? 'expected one as in HTTP, for example GET or POST.' : `did you mean ${likely}?`
  return `there is no method ${shorten(method)}; ${remedy}`
}

const LONGEST_SHOWN = 100

/** In quotes, for a message. */
function shorten(text: string): string {
  return JSON.stringify(text.slice(0, LONGEST_SHOWN))
}

function unknownRole(role: string, known: readonly string[]): string {
  return `There is no role ${JSON.stringify(role)}; expected one of ${known.join(', ')}.`
}

function unknownHost(host: string, hosts: readonly string[]): string {
  const expected = hosts.length === 0 ? 'the configuration has no hosts.' : `expected one of ${hosts.join(', ')}.`
  return `There is no host ${shorten(host)}; ${expected}`
}

function describe(judgeQuery: Judge, query: DerivedQuery, paint: Paint): string {
  const verdict = judgeQuery(query)
  const asked = safeText(`${query.method} ${query.host ?? ''}${query.path} as ${describeAsker(query)}`)
  return `${asked}: ${paint(COLOURS[verdict.outcome], verdict.outcome)}, ${safeText(reasonOf(verdict))}`
}

function describeAsker(query: DerivedQuery): string {
  const { role = VISITOR, groups = [], username = '' } = subjectOf(query) ?? {}
  return [
    query.isDerived ? `${role} (by roles)` : role,
    ...(username ? [`user ${username}`] : []),
    ...(groups.length > 0 ? [`in ${groups.join(' and ')}`] : []),
  ].join(', ')
}

const PROBLEMS: Readonly<Record<PathProblem, string>> = {
  no_single_slash_at_start: 'it does not begin with one slash',
  forbidden_character: 'it has a backslash, a control character or a character that has to be encoded',
  broken_encoding: 'its percent-encoding is broken',
  dot_segment: 'it has a dot segment',
  too_many_interpretations: 'it has too many interpretations, or a control character that is encoded twice',
}

function destinationText(problem: DestinationProblem): string {
  if (problem === 'other_upstream') return 'it leads to another upstream than the path'
  if (problem === 'too_long') return 'it is longer than 4096 bytes or has more than 100 segments'
  return problem in PROBLEMS ? PROBLEMS[problem as PathProblem] : 'it is not a path'
}

const UNSAID: Readonly<Record<UncheckedCondition, string>> = {
  networks: 'networks (--from)',
  hours: 'hours (--at)',
  maxAge: 'maxAge (--auth-age)',
  origin: 'origin',
}

function reasonOf(verdict: RuleVerdict): string {
  if ('destinationProblem' in verdict)
    return `because the destination cannot be judged: ${destinationText(verdict.destinationProblem)}`
  if (verdict.outcome === 'bad_request') return `because the path is ambiguous: ${PROBLEMS[verdict.problem]}`
  if (verdict.outcome === 'uri_too_long')
    return 'because the path is longer than 4096 bytes or has more than 100 segments'
  if (verdict.outcome === 'own') return 'because Menshen handles it itself'
  const { rule, interpretation, isBelow, destination, shadow, condition, unsaid } = verdict
  const affected = destination === undefined ? 'the path' : `the destination ${destination}`
  const acted = isBelow
    ? `, because the request acts on what is below ${affected} as well`
    : destination === undefined
      ? ''
      : `, for ${affected}`
  const read = `${acted}${interpretation === undefined ? '' : `, as an application could read it as ${interpretation}`}`
  const would = shadow ? `; on trial: ${shadow.outcome}, by the rule ${JSON.stringify(shadow.rule)}` : ''
  if (isClosed(rule))
    return `because an application could read it as ${interpretation}, which is for another upstream${would}`
  const code = condition === undefined ? '' : ` (${condition})`
  const note = unsaid ? `; not asked about, and so taken as met: ${unsaid.map(name => UNSAID[name]).join(', ')}` : ''
  return `by the rule ${JSON.stringify(rule)}${code}${read}${note}${would}`
}
