// Two rules for the same requests: nobody could tell which of them decides.
import type { z } from 'zod'
import type { Rule } from './config-file.ts'

export function refuseDuplicates(rules: readonly Rule[], context: z.RefinementCtx): void {
  for (const [i, rule] of rules.entries()) {
    const first = rules.findIndex(other => isDuplicate(rule, other))
    if (first < i) context.addIssue({ code: 'custom', path: [i], message: sentenceOf(rule, first) })
  }
}

/** A rule and another on trial may well stand side by side. */
function isDuplicate(one: Rule, other: Rule): boolean {
  const isAlike = one.path === other.path && !one.exact === !other.exact && !one.shadow === !other.shadow
  if (!isAlike || !one.methods || !other.methods) return isAlike && one.methods === other.methods
  return one.methods.some(method => other.methods?.includes(method))
}

function sentenceOf({ path, methods }: Rule, first: number): string {
  const what = methods ? `${methods.join(', ')} of ${path}` : path
  return `rules.${first} already decides ${what}; expected one rule, or methods that differ`
}
