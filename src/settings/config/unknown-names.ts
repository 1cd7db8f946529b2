// Names that lead nowhere: a role that nobody can have, a provider that is not there. A rule with a slip of the pen would
// shut everybody out, or leave nobody the role that it was meant for.
import type { z } from 'zod'
import { likelyMeantOf } from '../nearest.ts'
import type { Config } from './config-file.ts'
import { ANY_ROLE, USUAL_ROLE_NAMES } from './role-names.ts'

export function refuseUnknownNames(
  { provider, providers, roles = [], rules = [] }: Config,
  context: z.RefinementCtx,
): void {
  const refuse = (path: PropertyKey[], message: string) => context.addIssue({ code: 'custom', path, message })
  if (provider !== undefined && providers !== undefined) refuse(['provider'], 'expected either provider or providers')
  const ids = Object.keys(providers ?? {})
  if (providers !== undefined && ids.length === 0) refuse(['providers'], 'expected at least one provider')
  for (const [i, row] of roles.entries())
    for (const [j, id] of (row.provider ?? []).entries())
      if (!ids.includes(id))
        refuse(['roles', i, 'provider', j], `expected a name of providers${listed(ids)}${meant(id, ids)}`)
  const known = [...new Set([...USUAL_ROLE_NAMES, ...roles.map(({ role }) => role), ANY_ROLE])]
  for (const [i, rule] of rules.entries())
    for (const [j, role] of (rule.roles ?? []).entries())
      if (!known.includes(role))
        refuse(
          ['rules', i, 'roles', j],
          `no row of roles gives this role; expected one of ${quoted(known)}${meant(role, known)}`,
        )
}

function meant(given: string, names: readonly string[]): string {
  const likely = likelyMeantOf(given, names)
  return likely === undefined ? '' : `; did you mean ${JSON.stringify(likely)}?`
}

function listed(ids: readonly string[]): string {
  return ids.length > 0 ? `: ${quoted(ids)}` : ''
}

function quoted(names: readonly string[]): string {
  return names.map(name => JSON.stringify(name)).join('|')
}
