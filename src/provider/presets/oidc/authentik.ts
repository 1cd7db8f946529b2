// authentik. From its documentation (OAuth2 provider) and source; not tried live.
// The issuer ends in a slash; a refresh token rotates at every use.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const authentik: Preset = {
  ...oidc,
  name: 'authentik',
  variables: { app: { sentence: 'The slug of the application.' } },
  issuer: '{auth_url}/application/o/{app}/',
  scope: 'openid profile email offline_access',
  accessTokenTypes: ['JWT'],
}
