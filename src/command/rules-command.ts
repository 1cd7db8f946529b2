// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { canonicalPath, readablePath } from '../access/canonical-path.ts'
import { admits, createRules, type Rules } from '../access/rules.ts'
import { MenshenError } from '../errors.ts'
import { splitTarget } from '../gateway/http/request.ts'
import { isOwnPath, OWN_PATHS } from '../own-paths.ts'
import { ROLES, type Role, type Rule } from '../settings/config-file.ts'

interface Outcome {
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
    method: z.string().toUpperCase().default('GET'),
    expect: z.enum(['admitted', 'refused', 'login', 'bad_request', 'own']),
  }),
)

export function runRulesCommand(args: readonly string[], given: readonly Rule[]): Outcome {
  const rules = createRules(given)
  const { values, positionals } = readArguments(args)
  const [verb, subject, ...rest] = positionals
  const role = WHO.find(who => who === values.role)
  if (subject === undefined || rest.length > 0 || role === undefined) throw new MenshenError('bad_settings', USAGE)
  if (verb === 'check') return { lines: [describe(rules, values.method.toUpperCase(), subject, role)], ok: true }
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
  const { outcome, why, onTrial } = decide(rules, method, path, role)
  return `${method} ${path} as ${role}: ${outcome}, ${why}${onTrial ? `; ${onTrial}` : ''}`
}

type Outcomes = z.infer<typeof expectations>[number]['expect']

interface Verdict {
  readonly outcome: Outcomes
  readonly why: string
  /** What a shadow rule would do. */
  readonly onTrial?: string
}

function decide(rules: Rules, method: string, target: string, who: (typeof WHO)[number]): Verdict {
  // A browser encodes what is typed in, and the rules see nothing of the query.
  const [path] = splitTarget(target.replace(/[^\x21-\x7e]/gu, encodeURIComponent))
  const canonical = canonicalPath(path)
  if (canonical === undefined) return { outcome: 'bad_request', why: 'because the path is ambiguous' }
  const role = who === 'visitor' ? undefined : who
  const readable = readablePath(canonical)
  const { rule, reading } = rules.decide(method, readable, role)
  if (isOwnPath(canonical) && rule.path !== OWN_PATHS.console)
    return { outcome: 'own', why: 'because Menshen answers it itself' }
  const shadow = rules.shadowRuleFor(method, readable, role)
  return {
    outcome: outcomeOf(rule, role),
    why: `by the rule ${JSON.stringify(rule)}${reading === undefined ? '' : `, as an application could read it as ${reading}`}`,
    ...(shadow && { onTrial: `on trial: ${outcomeOf(shadow, role)}, by the rule ${JSON.stringify(shadow)}` }),
  }
}

function outcomeOf(rule: Rule, role: Role | undefined): Outcomes {
  if (admits(rule, role)) return 'admitted'
  return role === undefined ? 'login' : 'refused'
}
