// Who is behind a request, for reports: without it, one client's repeats would hide another's first.

import type { LoadedSession } from '../../session/session-cache.ts'
import { userFacts } from '../../session/session-facts.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

export function whoAsks(
  { settings }: Pick<GatewayContext, 'settings'>,
  visit: Pick<Visit, 'address' | 'headers'>,
  loaded?: Pick<LoadedSession, 'session'>,
): { address: string; user?: string; sub?: string } {
  const address = clientAddress(settings.TRUSTED_PROXIES, visit)
  return loaded ? { address, ...userFacts(loaded.session) } : { address }
}
