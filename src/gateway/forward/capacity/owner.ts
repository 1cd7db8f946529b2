// Who answers for a place with the application: a user with all sessions, a machine with all its tokens, or a visitor's
// network.
import { network } from '../../../settings/networks/networks.ts'
import type { Admission } from '../../admission/admit.ts'
import type { GatewayContext } from '../../context.ts'
import type { Visit } from '../../http/request.ts'
import { clientAddress } from '../../http/trusted-proxies.ts'

export function ownerOf(
  { settings }: Pick<GatewayContext, 'settings'>,
  visit: Visit,
  admission: Pick<Admission, 'loaded' | 'bearer'>,
): string {
  const known = admission.loaded ?? admission.bearer
  if (!known) return `address ${network(clientAddress(settings.TRUSTED_PROXIES, visit))}`
  const { provider = '', userInfo } = known.session
  return `user ${provider} ${userInfo.sub}`
}
