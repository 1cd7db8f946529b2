// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { roleNamesIn, USUAL_ROLES } from '../access/roles.ts'
import { createRules, type Rules } from '../access/rules.ts'
import { judge, type Question, type Verdict, VISITOR, whoIsMeant } from '../access/verdict.ts'
import { MenshenError } from '../errors.ts'
import type { RoleConfig, Rule } from '../settings/config/config-file.ts'

interface Outcome {
  readonly lines: readonly string[]
  readonly ok: boolean
}

const USAGE = `Expected one of:
  menshen rules check PATH [--role ROLE|visitor] [--group GROUP] [--user NAME] [--method GET]
  menshen rules test FILE      a JSON array of { "path", "role"?, "groups"?, "user"?, "method"?, "expect": "admitted" | "refused" | "login" }`

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
  const known = [VISITOR, ...roleNamesIn(roles)]
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
    const { outcome } = judge(rules, question)
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
  const verdict = judge(rules, question)
  return `${question.method} ${question.path} as ${describeAsker(question)}: ${verdict.outcome}, ${reasonOf(verdict)}`
}

function describeAsker(question: Question): string {
  const { role = VISITOR, groups = [], username = '' } = whoIsMeant(question) ?? {}
  return [
    role,
    ...(username ? [`user ${username}`] : []),
    ...(groups.length > 0 ? [`in ${groups.join(' and ')}`] : []),
  ].join(', ')
}

function reasonOf(verdict: Verdict): string {
  if (verdict.outcome === 'bad_request') return 'because the path is ambiguous'
  if (verdict.outcome === 'own') return 'because Menshen answers it itself'
  const { rule, reading, onTrial } = verdict
  const read = reading === undefined ? '' : `, as an application could read it as ${reading}`
  const trial = onTrial ? `; on trial: ${onTrial.outcome}, by the rule ${JSON.stringify(onTrial.rule)}` : ''
  return `by the rule ${JSON.stringify(rule)}${read}${trial}`
}
