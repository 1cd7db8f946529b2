// What BASE_URL and the hosts of `hosts` know about each other.

import type { Rules } from '../access/rules.ts'
import type { Settings } from '../config/settings.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { BeginRequest } from '../http/request.ts'
import type { HandoffCodes, HostTickets } from './tickets.ts'

/** The context of a host, whose users sign in at BASE_URL. */
export interface HostContext extends GatewayContext {
  readonly host: ApplicationHost
}

export interface ApplicationHost {
  /** As browsers send it in Host. */
  readonly name: string
  /** BASE_URL. */
  readonly authUrl: string
  readonly tickets: HostTickets
  readonly codes: HandoffCodes
}

/** The context of BASE_URL if there are hosts. */
export interface AuthHostContext extends GatewayContext {
  readonly hosts: KnownHosts
}

export interface KnownHosts {
  readonly rules: ReadonlyMap<string, Rules>
  /** The name of the host with this origin. */
  nameOf(origin: string): string | undefined
  readonly tickets: HostTickets
  readonly codes: HandoffCodes
  /** Whether a browser may get another code: a handoff that repeats is a redirect loop. */
  mayHandOff(sessionKey: string, address: string): boolean
}

/** Adds the name of the host to every report of a request at it. */
export function beginAtHost(begin: BeginRequest, host: string): BeginRequest {
  return head => {
    const observed = begin(head)
    observed.host = host
    return observed
  }
}

export function createKnownHosts(
  { BASE_URL }: Pick<Settings, 'BASE_URL'>,
  rules: ReadonlyMap<string, Rules>,
  tickets: Pick<KnownHosts, 'tickets' | 'codes' | 'mayHandOff'>,
): KnownHosts {
  const { protocol } = new URL(BASE_URL)
  const byOrigin = new Map([...rules.keys()].map(name => [`${protocol}//${name}`, name]))
  return { ...tickets, rules, nameOf: origin => byOrigin.get(origin) }
}
