// Who answers for a place with the application: a user with all sessions, or a visitor's address.
import type { LoadedSession } from '../../../session/session-cache.ts'
import type { GatewayContext } from '../../context.ts'
import type { Visit } from '../../http/request.ts'
import { clientAddress } from '../../http/trusted-proxies.ts'

export function ownerOf(
  { settings }: Pick<GatewayContext, 'settings'>,
  visit: Visit,
  loaded: LoadedSession | undefined,
): string {
  if (!loaded) return `address ${clientAddress(settings.TRUSTED_PROXIES, visit)}`
  const { provider = '', userInfo } = loaded.session
  return `user ${provider} ${userInfo.sub}`
}
