// The one application that is registered with this provider.

import type { Fields } from './fields.ts'
import { isSameSecret } from './secrets.ts'

export interface RegisteredClient {
  readonly id: string
  readonly secret: string
  readonly redirectUri: string
}

/** Whether the body carries the client's own credentials. */
export function isAuthenticated(client: RegisteredClient, form: Fields): boolean {
  const sameId = isSameSecret(form.get('client_id') ?? '', client.id)
  const sameSecret = isSameSecret(form.get('client_secret') ?? '', client.secret)
  return sameId && sameSecret
}
