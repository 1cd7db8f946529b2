// Who is behind a request, for reports: without it, one client's repeats would hide another's first.

import { requestFacts } from '../../observe/observed-request.ts'
import { knownFacts } from '../../session/session-facts.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

export function whoAsks(
  { settings }: Pick<GatewayContext, 'settings'>,
  { observed, ...visit }: Pick<Visit, 'address' | 'headers' | 'observed'>,
  known?: Parameters<typeof knownFacts>[0],
) {
  return {
    ...requestFacts(observed),
    address: clientAddress(settings.TRUSTED_PROXIES, visit),
    ...(known && knownFacts(known)),
  }
}
