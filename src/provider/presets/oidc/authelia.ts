// Authelia. From its documentation (OpenID Connect provider and clients); not tried live.
// It takes only scopes and the authentication method that the client is registered with.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const authelia: Preset = {
  ...oidc,
  name: 'Authelia',
  scope: 'openid profile email groups offline_access',
}
