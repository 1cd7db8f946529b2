// `menshen rules check PATH --role ROLE` says what would happen and by which rule; `menshen rules test FILE` runs a table
// of expectations.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { canonicalPath, readablePath } from '../access/canonical-path.ts'
import { NOBODYS_ROLE, type Who } from '../access/roles.ts'
import { admits, createRules, type Rules } from '../access/rules.ts'
import { MenshenError } from '../errors.ts'
import { splitTarget } from '../gateway/http/request.ts'
import { isOwnPath, OWN_PATHS } from '../own-paths.ts'
import type { Rule } from '../settings/config/config-file.ts'

export interface Outcome {
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

export function runRulesCommand(args: readonly string[], given: readonly Rule[]): Outcome {
  const rules = createRules(given)
  const { values, positionals } = readArguments(args)
  const [verb, subject, ...rest] = positionals
  if (subject === undefined || rest.length > 0) throw new MenshenError('bad_settings', USAGE)
  const { role, group: groups, user, method } = values
  const question = { path: subject, role, groups, user, method: method.toUpperCase() }
  if (verb === 'check') return { lines: [describe(rules, question)], ok: true }
  if (verb === 'test') return runTable(rules, subject)
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

function runTable(rules: Rules, file: string): Outcome {
  const table = readTable(file)
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

function describe(rules: Rules, question: Question): string {
  const { method, path, role } = question
  const { outcome, why, onTrial } = decide(rules, question)
  return `${method} ${path} as ${role}: ${outcome}, ${why}${onTrial ? `; ${onTrial}` : ''}`
}

type Question = Omit<z.infer<typeof expectations>[number], 'expect'>
type Outcomes = z.infer<typeof expectations>[number]['expect']

interface Verdict {
  readonly outcome: Outcomes
  readonly why: string
  /** What a shadow rule would do. */
  readonly onTrial?: string
}

function decide(rules: Rules, { method, path: target, role, groups, user }: Question): Verdict {
  // A browser encodes what is typed in, and the rules see nothing of the query.
  const [path] = splitTarget(target.replace(/[^\x21-\x7e]/gu, encodeURIComponent))
  const canonical = canonicalPath(path)
  if (canonical === undefined) return { outcome: 'bad_request', why: 'because the path is ambiguous' }
  // Whoever has a group or a name is signed in.
  const isVisitor = role === VISITOR && groups.length === 0 && user === ''
  const who = isVisitor ? undefined : { role: role === VISITOR ? NOBODYS_ROLE : role, groups, username: user }
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
