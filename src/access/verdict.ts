// What would happen to a request, and by which rule: the answer to "who may see what?", without a request.
import { isOwnPath, OWN_PATHS } from '../own-paths.ts'
import type { Rule } from '../settings/config/config-file.ts'
import { NOBODYS_ROLE } from '../settings/config/role-names.ts'
import { canonicalPath, readablePath } from './canonical-path.ts'
import type { Who } from './roles.ts'
import { admits, type Rules } from './rules.ts'
import { isTooLong } from './target.ts'

/** Nobody is signed in. */
export const VISITOR = 'visitor'

export interface Question {
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
  /** The path is ambiguous. */
  | { readonly outcome: 'bad_request' }
  /** Nobody tries to read it. */
  | { readonly outcome: 'uri_too_long' }
  /** Menshen answers it itself. */
  | { readonly outcome: 'own' }
  | {
      readonly outcome: Judgement
      readonly rule: Rule
      /** The path as an application could read it, if it was not the path as it is that decided. */
      readonly reading?: string | undefined
      /** What a shadow rule would do. */
      readonly onTrial?: { readonly outcome: Judgement; readonly rule: Rule }
    }

/** `callbackPaths` are those of the providers. */
export function judge(rules: Rules, question: Question, callbackPaths?: ReadonlySet<string>): Verdict {
  const { method, path: target } = question
  // A browser encodes what is typed in.
  const [path = ''] = target.replace(/[^\x21-\x7e]/gu, encoded).split('?', 1)
  if (isTooLong(path)) return { outcome: 'uri_too_long' }
  const canonical = canonicalPath(path)
  if (canonical === undefined) return { outcome: 'bad_request' }
  const who = whoIsMeant(question)
  const readable = readablePath(canonical)
  const { rule, reading } = rules.decide(method, readable, who)
  if (isOwnPath(canonical, callbackPaths) && rule.path !== OWN_PATHS.console) return { outcome: 'own' }
  const shadow = rules.shadowRuleFor(method, readable, who)
  return {
    outcome: outcomeOf(rule, who),
    rule,
    reading,
    ...(shadow && { onTrial: { outcome: outcomeOf(shadow, who), rule: shadow } }),
  }
}

/** Whoever has a group or a name is signed in. */
export function whoIsMeant({ role, groups, user }: Question): Who | undefined {
  if (role === VISITOR && groups.length === 0 && user === '') return undefined
  return { role: role === VISITOR ? NOBODYS_ROLE : role, groups, username: user }
}

/** Half of a character has no encoding. */
function encoded(character: string): string {
  return encodeURIComponent(character.toWellFormed())
}

function outcomeOf(rule: Rule, who: Who | undefined): Judgement {
  if (admits(rule, who)) return 'admitted'
  return who === undefined ? 'login' : 'refused'
}
