// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { ROLES, type Role, type Rule } from './config-file.ts'
import { MenshenError } from './errors.ts'
import { canonicalPath } from './gateway/path.ts'
import { admits, createRules, type Rules } from './session/rules.ts'

export interface Outcome {
  readonly lines: readonly string[]
  readonly ok: boolean
}

const USAGE = `Expected one of:
  menshen rules check PATH [--role ${ROLES.join('|')}|visitor] [--method GET]
  menshen rules test FILE      a JSON array of { "path", "role", "method"?, "expect": "admitted" | "refused" | "login" }`

const WHO = [...ROLES, 'visitor'] as const
const expectations = z.array(
  z.strictObject({
    path: z.string(),
    role: z.enum(WHO).default('visitor'),
    method: z.string().default('GET'),
    expect: z.enum(['admitted', 'refused', 'login', 'bad_request']),
  }),
)

export function runRulesCommand(args: readonly string[], given: readonly Rule[]): Outcome {
  const rules = createRules(given)
  const { values, positionals } = readArguments(args)
  const [verb, subject, ...rest] = positionals
  const role = WHO.find(who => who === values.role)
  if (subject === undefined || rest.length > 0 || role === undefined) throw new MenshenError('bad_settings', USAGE)
  if (verb === 'check') return { lines: [describe(rules, values.method, subject, role)], ok: true }
  if (verb === 'test') return runTable(rules, subject)
  throw new MenshenError('bad_settings', USAGE)
}

function readArguments(args: readonly string[]) {
  try {
    const options = {
      role: { type: 'string', default: 'visitor' },
      method: { type: 'string', default: 'GET' },
    } as const
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new MenshenError('bad_settings', `${(error as Error).message}\n${USAGE}`)
  }
}

function runTable(rules: Rules, file: string): Outcome {
  const table = readTable(file)
  const failures = table.flatMap(({ path, role, method, expect }) => {
    const { outcome } = decide(rules, method, path, role)
    return outcome === expect ? [] : [`expected ${expect}: ${describe(rules, method, path, role)}`]
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

function describe(rules: Rules, method: string, path: string, role: (typeof WHO)[number]): string {
  const { outcome, rule } = decide(rules, method, path, role)
  const by = rule ? `by the rule ${JSON.stringify(rule)}` : 'because the path is ambiguous'
  return `${method} ${path} as ${role}: ${outcome}, ${by}`
}

function decide(rules: Rules, method: string, path: string, role: Role | 'visitor') {
  const canonical = canonicalPath(path)
  if (canonical === undefined) return { outcome: 'bad_request', rule: undefined }
  const rule = rules.ruleFor(method, canonical)
  if (admits(rule, role === 'visitor' ? undefined : role)) return { outcome: 'admitted', rule }
  return { outcome: role === 'visitor' ? 'login' : 'refused', rule }
}
