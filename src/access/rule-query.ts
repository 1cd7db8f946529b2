// What would happen to a request, and by which rule: the answer to "who may see what?", without a request.

import type { Rule } from '../config/config-file.ts'
import { DEFAULT_ROLE } from '../config/config-file.ts'
import { isOwnPath, OWN_PATHS } from '../paths.ts'
import type { PathProblem } from './request-path.ts'
import { isTooLong, pathProblem } from './request-path.ts'
import type { Subject } from './roles.ts'
import type { Rules } from './rules.ts'
import { admits } from './rules.ts'

/** Nobody is signed in. */
export const VISITOR = 'visitor'

export interface RuleQuery {
  readonly method: string
  /** As it is typed in; the rules see nothing of its query. */
  readonly path: string
  /** A role, or `visitor`. */
  readonly role: string
  readonly groups: readonly string[]
  readonly user: string
}

type Judgement = 'admitted' | 'refused' | 'login'

export type Verdict =
  /** The path is refused, whatever the rules say. */
  | { readonly outcome: 'bad_request'; readonly problem: PathProblem }
  /** The path is not read. */
  | { readonly outcome: 'uri_too_long' }
  /** Menshen answers it itself. */
  | { readonly outcome: 'own' }
  | {
      readonly outcome: Judgement
      readonly rule: Rule
      /** The interpretation that decided, if it was another one than the path as it is. */
      readonly interpretation?: string | undefined
      /** What a shadow rule would do. */
      readonly shadow?: { readonly outcome: Judgement; readonly rule: Rule }
    }

/** `signInPaths` are those of the providers. */
export function judge(rules: Rules, question: RuleQuery, signInPaths?: ReadonlySet<string>): Verdict {
  const { method, path: target } = question
  // A browser encodes what is typed in.
  const [path = ''] = target.replace(/[^\x21-\x7e]/gu, encoded).split('?', 1)
  if (isTooLong(path)) return { outcome: 'uri_too_long' }
  const problem = pathProblem(path)
  if (problem) return { outcome: 'bad_request', problem }
  const who = subjectOf(question)
  const { rule, interpretation } = rules.decide(method, path, who)
  if (isOwnPath(path, signInPaths) && rule.path !== OWN_PATHS.console) return { outcome: 'own' }
  const shadow = rules.shadowRuleFor(method, path, who)
  return {
    outcome: outcomeOf(rule, who),
    rule,
    interpretation,
    ...(shadow && { shadow: { outcome: outcomeOf(shadow, who), rule: shadow } }),
  }
}

/** Whoever has a group or a name is signed in. */
export function subjectOf({ role, groups, user }: RuleQuery): Subject | undefined {
  if (role === VISITOR && groups.length === 0 && user === '') return undefined
  return { role: role === VISITOR ? DEFAULT_ROLE : role, groups, username: user }
}

/** Half of a character has no encoding. */
function encoded(character: string): string {
  return encodeURIComponent(character.toWellFormed())
}

function outcomeOf(rule: Rule, who: Subject | undefined): Judgement {
  if (admits(rule, who)) return 'admitted'
  return who === undefined ? 'login' : 'refused'
}
