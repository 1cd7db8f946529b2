// Who answers for a place with the application: a user with all sessions, or a visitor's address.
import type { LoadedSession } from '../../../session/session-cache.ts'
import type { Visit } from '../../http/request.ts'

export function ownerOf({ address }: Pick<Visit, 'address'>, loaded: LoadedSession | undefined): string {
  return loaded ? `user ${loaded.session.userInfo.sub}` : `address ${address}`
}
