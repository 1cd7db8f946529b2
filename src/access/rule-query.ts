// Finds what would happen to a request, and which rule decides, without sending one.

import type { Rule } from '../config/file.ts'
import { MACHINE_PREFIX } from '../config/machines.ts'
import { DEFAULT_ROLE } from '../config/role-names.ts'
import { isOwnPath, isResourceMetadataPath, OWN_PATHS } from '../paths.ts'
import { type DestinationProblem, decideRequest, shadowDecision } from './affected-paths.ts'
import { type Conditions, type LocalTime, type RefusalCode, type UnmetCondition, unmetOf } from './conditions.ts'
import type { PathProblem } from './request-path.ts'
import { isTooLong, pathProblem } from './request-path.ts'
import type { Subject } from './roles.ts'
import type { Decision, Rules } from './rules.ts'

/** Not signed in. */
export const VISITOR = 'visitor'

export interface RuleQuery {
  readonly method: string
  /** As typed in; the rules ignore its query. */
  readonly path: string
  /** A role, or `visitor`. */
  readonly role: string
  readonly groups: readonly string[]
  readonly user: string
  /** The second path of COPY and MOVE. */
  readonly destination?: string | undefined
  /** For a method that also acts on everything below the path. */
  readonly depth?: string | undefined
  /** The client's address. */
  readonly from?: string | undefined
  /** A time without an offset is in the zone of the rule. */
  readonly at?: number | LocalTime | undefined
  /** How many seconds ago the user signed in. */
  readonly authAge?: number | undefined
  /** As in the id_token; any of several values may match. Without a value the user has none. */
  readonly acr?: readonly string[] | undefined
  readonly amr?: readonly string[] | undefined
}

type VerdictOutcome = 'admitted' | 'refused' | 'login' | 'step_up'

/** Conditions that were not specified: they are assumed to be met. */
export type UncheckedCondition = 'networks' | 'hours' | 'maxAge' | 'origin'

export type RuleVerdict =
  /** The path is refused, whatever the rules say. */
  | { readonly outcome: 'bad_request'; readonly problem: PathProblem }
  /** The destination is refused, whatever the rules say. */
  | { readonly outcome: 'bad_request'; readonly destinationProblem: DestinationProblem }
  /** The path is too long to be judged. */
  | { readonly outcome: 'uri_too_long' }
  /** Menshen answers the request itself. */
  | { readonly outcome: 'own' }
  | {
      readonly outcome: VerdictOutcome
      readonly rule: Rule
      /** The interpretation that decided, if it differs from the literal path. */
      readonly interpretation?: string | undefined
      /** The rule is for something below the path. */
      readonly isBelow?: true | undefined
      /** The destination, if the rule is for it or for something below it. */
      readonly destination?: string | undefined
      /** The condition that refused. */
      readonly condition?: RefusalCode
      readonly unchecked?: readonly UncheckedCondition[]
      /** What a shadow rule would do. */
      readonly shadow?: { readonly outcome: VerdictOutcome; readonly rule: Rule }
    }

/** A destination has no host here. */
const ANY_BASE_URL = 'http://localhost'

/** `signInPaths` are the paths of the providers. */
export function answerRuleQuery(rules: Rules, query: RuleQuery, signInPaths?: ReadonlySet<string>): RuleVerdict {
  const { method, path: target } = query
  // A browser encodes what the user types in.
  const [path = ''] = encodedTarget(target).split('?', 1)
  if (isTooLong(path)) return { outcome: 'uri_too_long' }
  const problem = pathProblem(path)
  if (problem) return { outcome: 'bad_request', problem }
  const subject = subjectOf(query)
  const { destination: typed, depth } = query
  const headers = {
    ...(typed !== undefined && { destination: encodedTarget(typed) }),
    ...(depth !== undefined && { depth }),
  }
  const request = { method, path, headers }
  const decision = decideRequest(rules, request, subject, ANY_BASE_URL)
  const { rule, interpretation, isBelow, destination } = decision
  if (isOwnPath(path, signInPaths) && rule.path !== OWN_PATHS.console) return { outcome: 'own' }
  if (rules.hasBearer && isResourceMetadataPath(path)) return { outcome: 'own' }
  if (decision.problem) return { outcome: 'bad_request', destinationProblem: decision.problem }
  const shadow = shadowDecision(rules, request, subject, ANY_BASE_URL)
  return {
    ...evaluate(decision, subject, query),
    interpretation,
    ...(isBelow && { isBelow }),
    ...(destination !== undefined && { destination }),
    ...(shadow && { shadow: evaluate(shadow, subject, query) }),
  }
}

interface DecisionVerdict {
  readonly outcome: VerdictOutcome
  readonly rule: Rule
  readonly condition?: RefusalCode
  readonly unchecked?: readonly UncheckedCondition[]
}

function evaluate(
  { rule, isAdmitted, conditions }: Decision,
  subject: Subject | undefined,
  query: RuleQuery,
): DecisionVerdict {
  if (!isAdmitted) return { outcome: subject === undefined ? 'login' : 'refused', rule }
  if (!conditions) return { outcome: 'admitted', rule }
  const unmet = unmetBy(conditions, subject, query)
  if (unmet?.code === 'step_up') return { outcome: 'step_up', rule: unmet.rule }
  if (unmet) return { outcome: 'refused', rule: unmet.rule, condition: unmet.code }
  const unchecked = uncheckedOf(conditions, query)
  return { outcome: 'admitted', rule, ...(unchecked.length > 0 && { unchecked }) }
}

/** The current time is zero. */
const NOW = 0

function unmetBy(
  conditions: readonly Conditions[],
  subject: Subject | undefined,
  query: RuleQuery,
): UnmetCondition | undefined {
  const { from, at, authAge = 0, acr = [], amr } = query
  const levels = acr.length === 0 ? [undefined] : acr
  const results = levels.map(level => {
    const authentication = subject && { time: NOW - authAge * 1000, acr: level, amr }
    return unmetOf(conditions, { address: from, at, isOwnOrigin: true, authentication }, NOW)
  })
  return results.every(result => result !== undefined) ? results[0] : undefined
}

function uncheckedOf(
  conditions: readonly Conditions[],
  { method, from, at, authAge }: RuleQuery,
): UncheckedCondition[] {
  const wants = (name: (condition: Conditions) => unknown) => conditions.some(condition => name(condition))
  return [
    ...(from === undefined && wants(({ networks }) => networks) ? ['networks' as const] : []),
    ...(at === undefined && wants(({ hours }) => hours) ? ['hours' as const] : []),
    ...(authAge === undefined && wants(({ demand }) => demand?.maxAge) ? ['maxAge' as const] : []),
    ...(!/^(?:GET|HEAD|OPTIONS)$/.test(method) && wants(({ isOwnOrigin }) => isOwnOrigin) ? ['origin' as const] : []),
  ]
}

const TIME = /^(\d{4}-\d\d-\d\d)[T ]((?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/

/** `2026-11-16T09:00`, with or without an offset; `undefined` for anything else. */
export function readTime(text: string): number | LocalTime | undefined {
  const [, date = '', time = '', seconds = '', offset] = TIME.exec(text) ?? []
  const at = Date.parse(`${date}T${time}${seconds}${offset ?? 'Z'}`)
  const day = new Date(`${date}T00:00Z`)
  // The 30th of February would be a day in March.
  if (Number.isNaN(at) || day.toISOString().slice(0, 10) !== date) return undefined
  const [hour = 0, minute = 0] = time.split(':').map(Number)
  return offset === undefined ? { day: day.getUTCDay(), minute: hour * 60 + minute } : at
}

/** A user with a group or a name is signed in. A machine sends its key. */
export function subjectOf({ role, groups, user }: RuleQuery): Subject | undefined {
  if (role === VISITOR && groups.length === 0 && user === '') return undefined
  const named = { role: role === VISITOR ? DEFAULT_ROLE : role, groups, username: user }
  return user.startsWith(MACHINE_PREFIX) ? { ...named, keyKind: 'machine' } : named
}

function encodedTarget(target: string): string {
  return target.replace(/[^\x21-\x7e]/gu, encoded)
}

/** Half of a surrogate pair has no encoding. */
function encoded(character: string): string {
  return encodeURIComponent(character.toWellFormed())
}
