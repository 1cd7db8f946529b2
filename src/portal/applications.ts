// The applications of the portal, and which of them a user sees now. The rules of each application's own site decide about its
// start, for this user and this request, as they would if the user opened it:
//
//   not for this user               not shown at all
//   a condition is not met          shown with the reason
//   another sign-in is required     shown: opening it leads to that sign-in
//   admitted                        shown

import { type RefusalCode, unmetOf } from '../access/conditions.ts'
import { admits, type Rules } from '../access/rules.ts'
import type { Config } from '../config/file.ts'
import { portalEntries } from '../config/portal.ts'
import type { Hours } from '../config/rule-conditions.ts'
import type { Settings } from '../config/settings.ts'
import { RequestConditionContext } from '../http/caller.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { Application, PortalContext } from './context.ts'
import { createIcon } from './icon.ts'
import { tile } from './tile.ts'

export interface ShownApplication {
  readonly application: Application
  /** Why it cannot be opened now. */
  readonly unavailable?: Unavailable
}

export interface Unavailable {
  readonly code: RefusalCode
  /** When it can be opened, if that is the reason. */
  readonly hours: Hours | undefined
}

/** The applications of a configuration, in the order of the portal. */
export function createApplications(
  { BASE_URL }: Pick<Settings, 'BASE_URL'>,
  config: Pick<Config, 'upstreams' | 'hosts'>,
  keys: DerivedKeys,
): readonly Application[] {
  const { origin, protocol } = new URL(BASE_URL)
  const shown = portalEntries(config).filter(({ keys }) => keys.portal !== false)
  return shown.map(({ host, prefix, keys: given }) => {
    const { title = host ?? prefix, description = '', icon, start = prefix } = given
    const { href: url, pathname } = new URL(start, host === undefined ? origin : `${protocol}//${host}`)
    const text = searchable([title, description, host ?? prefix].join(' '))
    const source = { title, description, url, icon: createIcon(icon, title, keys), text }
    return { ...source, path: pathname, host, tile: String(tile(source)) }
  })
}

/** The applications that this user sees now. It calls neither the store nor the provider. */
export function applicationsFor(
  { auth, hostRules, applications, settings, now }: PortalContext,
  { headers, observed }: Pick<GatewayRequest, 'headers' | 'observed'>,
  caller: SignedInCaller,
): ShownApplication[] {
  const at = now()
  const method = 'GET'
  const context = new RequestConditionContext({ method, headers, observed }, caller, settings.BASE_URL, at)
  return applications.flatMap(application => {
    const { host, path } = application
    const rules: Rules | undefined = host === undefined ? auth.rules : hostRules.get(host)
    const decision = rules?.decide(method, path, caller.loaded.who)
    if (!decision || !admits(decision.rule, caller.loaded.who)) return []
    const unmet = decision.conditions && unmetOf(decision.conditions, context, at)
    if (!unmet || unmet.code === 'step_up') return [{ application }]
    const { code, rule } = unmet
    return [{ application, unavailable: { code, hours: code === 'outside_hours' ? rule.hours : undefined } }]
  })
}

// The filter.

/** Ignores case, and the width of letters. browser/portal.js does the same. */
export function searchable(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

/** Whether an application matches all words of a filter. */
export function matches({ text }: Application, filter: string): boolean {
  if (filter === '') return true
  return searchable(filter)
    .split(/\s+/)
    .every(word => text.includes(word))
}
