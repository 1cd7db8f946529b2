// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { canonicalPath, readablePath } from '../access/canonical-path.ts'
import { USUAL_ROLES, type Who } from '../access/roles.ts'
import { admits, createRules, type Rules } from '../access/rules.ts'
import { MenshenError } from '../errors.ts'
import { splitTarget } from '../gateway/http/request.ts'
import { isOwnPath, OWN_PATHS } from '../own-paths.ts'
import type { RoleConfig, Rule } from '../settings/config/config-file.ts'
import { NOBODYS_ROLE, USUAL_ROLE_NAMES } from '../settings/config/role-names.ts'

interface Outcome {
  readonly lines: readonly string[]
  readonly ok: boolean
}

const USAGE = `Expected one of:
  menshen rules check PATH [--role ROLE|visitor] [--group GROUP] [--user NAME] [--method GET]
  menshen rules test FILE      a JSON array of { "path", "role"?, "groups"?, "user"?, "method"?, "expect": "admitted" | "refused" | "login" }`

const VISITOR = 'visitor'
const expectations = z.array(
  z.strictObject({
    path: z.string(),
    role: z.string().default(VISITOR),
    groups: z.array(z.string()).default([]),
    user: z.string().default(''),
    method: z.string().toUpperCase().default('GET'),
    expect: z.enum(['admitted', 'refused', 'login', 'bad_request', 'own']),
  }),
)

export function runRulesCommand(
  args: readonly string[],
  given: readonly Rule[],
  roles: readonly RoleConfig[] = USUAL_ROLES,
): Outcome {
  const rules = createRules(given)
  const known = [VISITOR, ...USUAL_ROLE_NAMES, ...roles.map(row => row.role)]
  const { values, positionals } = readArguments(args)
  const [verb, subject, ...rest] = positionals
  if (subject === undefined || rest.length > 0) throw new MenshenError('bad_settings', USAGE)
  const { role, group: groups, user, method } = values
  const question = { path: subject, role, groups, user, method: method.toUpperCase() }
  if (verb === 'check') {
    if (!known.includes(role)) throw new MenshenError('bad_settings', `${unknownRole(role, known)}\n${USAGE}`)
    return { lines: [describe(rules, question)], ok: true }
  }
  if (verb === 'test') return runTable(rules, subject, known)
  throw new MenshenError('bad_settings', USAGE)
}

function readArguments(args: readonly string[]) {
  try {
    const options = {
      role: { type: 'string', default: VISITOR },
      group: { type: 'string', multiple: true, default: [] as string[] },
      user: { type: 'string', default: '' },
      method: { type: 'string', default: 'GET' },
    } as const
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new MenshenError('bad_settings', `${(error as Error).message}\n${USAGE}`)
  }
}

function runTable(rules: Rules, file: string, known: readonly string[]): Outcome {
  const table = readTable(file)
  const odd = table.find(({ role }) => !known.includes(role))
  if (odd) throw new MenshenError('bad_settings', `${file} cannot be used: ${unknownRole(odd.role, known)}\n${USAGE}`)
  const failures = table.flatMap(({ expect, ...question }) => {
    const { outcome } = decide(rules, question)
    return outcome === expect ? [] : [`expected ${expect}: ${describe(rules, question)}`]
  })
  return {
    lines: [...failures, `${table.length - failures.length} passed, ${failures.length} failed`],
    ok: failures.length === 0,
  }
}

function readTable(file: string): z.infer<typeof expectations> {
  try {
    return expectations.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new MenshenError('bad_settings', `${file} cannot be used: ${(error as Error).message}\n${USAGE}`)
  }
}

function unknownRole(role: string, known: readonly string[]): string {
  return `There is no role ${JSON.stringify(role)}; expected one of ${known.join(', ')}.`
}

function describe(rules: Rules, question: Question): string {
  const { method, path } = question
  const { outcome, why, onTrial } = decide(rules, question)
  return `${method} ${path} as ${describeAsker(question)}: ${outcome}, ${why}${onTrial ? `; ${onTrial}` : ''}`
}

function describeAsker(question: Question): string {
  const { role = VISITOR, groups = [], username = '' } = whoAsks(question) ?? {}
  return [
    role,
    ...(username ? [`user ${username}`] : []),
    ...(groups.length > 0 ? [`in ${groups.join(' and ')}`] : []),
  ].join(', ')
}

/** Whoever has a group or a name is signed in. */
function whoAsks({ role, groups, user }: Question): Who | undefined {
  if (role === VISITOR && groups.length === 0 && user === '') return undefined
  return { role: role === VISITOR ? NOBODYS_ROLE : role, groups, username: user }
}

type Question = Omit<z.infer<typeof expectations>[number], 'expect'>
type Outcomes = z.infer<typeof expectations>[number]['expect']

interface Verdict {
  readonly outcome: Outcomes
  readonly why: string
  /** What a shadow rule would do. */
  readonly onTrial?: string
}

function decide(rules: Rules, question: Question): Verdict {
  const { method, path: target } = question
  // A browser encodes what is typed in, and the rules see nothing of the query.
  const [path] = splitTarget(target.replace(/[^\x21-\x7e]/gu, encodeURIComponent))
  const canonical = canonicalPath(path)
  if (canonical === undefined) return { outcome: 'bad_request', why: 'because the path is ambiguous' }
  const who = whoAsks(question)
  const readable = readablePath(canonical)
  const { rule, reading } = rules.decide(method, readable, who)
  if (isOwnPath(canonical) && rule.path !== OWN_PATHS.console)
    return { outcome: 'own', why: 'because Menshen answers it itself' }
  const shadow = rules.shadowRuleFor(method, readable, who)
  return {
    outcome: outcomeOf(rule, who),
    why: `by the rule ${JSON.stringify(rule)}${reading === undefined ? '' : `, as an application could read it as ${reading}`}`,
    ...(shadow && { onTrial: `on trial: ${outcomeOf(shadow, who)}, by the rule ${JSON.stringify(shadow)}` }),
  }
}

function outcomeOf(rule: Rule, who: Who | undefined): Outcomes {
  if (admits(rule, who)) return 'admitted'
  return who === undefined ? 'login' : 'refused'
}
