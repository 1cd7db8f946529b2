// Names that lead nowhere: a role that nobody can have, a provider that is not there. A rule with a slip of the pen would
// shut everybody out, or leave nobody the role that it was meant for.
import type { z } from 'zod'
import { callbackPathsOf } from '../../own-paths.ts'
import { likelyMeantOf } from '../nearest.ts'
import type { Config } from './config-file.ts'
import { ANY_ROLE, USUAL_ROLE_NAMES } from './role-names.ts'

type Refuse = (path: PropertyKey[], message: string) => void

export function refuseUnknownNames(config: Config, context: z.RefinementCtx): void {
  const { provider, providers, roles = [], rules = [] } = config
  const refuse: Refuse = (path, message) => context.addIssue({ code: 'custom', path, message })
  if (provider !== undefined && providers !== undefined) refuse(['provider'], 'expected either provider or providers')
  const ids = Object.keys(providers ?? {})
  if (providers !== undefined && ids.length === 0) refuse(['providers'], 'expected at least one provider')
  for (const [i, row] of roles.entries())
    for (const [j, id] of (row.provider ?? []).entries())
      if (!ids.includes(id))
        refuse(['roles', i, 'provider', j], `expected a name of providers${listed(ids)}${meant(id, ids)}`)
  refuseCallbacks(config, refuse)
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

/** Where a provider sends the browser back. */
function refuseCallbacks({ providers, rules = [], upstreams = {} }: Config, refuse: Refuse): void {
  const taken = callbackPathsOf(providers)
  for (const [i, { path }] of rules.entries()) if (taken.has(path)) refuse(['rules', i, 'path'], OUR_OWN)
  for (const path of Object.keys(upstreams)) if (taken.has(path)) refuse(['upstreams', path], OUR_OWN)
}

const OUR_OWN = 'this path is our own; leave it out'

function listed(ids: readonly string[]): string {
  return ids.length > 0 ? `: ${quoted(ids)}` : ''
}

function quoted(names: readonly string[]): string {
  return names.map(name => JSON.stringify(name)).join('|')
}
