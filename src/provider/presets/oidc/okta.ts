// Okta. From its documentation (authorization servers) and the clients of JustAuth and Better Auth; not tried live.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const okta: Preset = {
  ...oidc,
  name: 'Okta',
  variables: { server: { sentence: 'The authorization server.', default: 'default' } },
  issuer: '{auth_url}/oauth2/{server}',
  clientAssertionAudience: 'token_endpoint',
  scope: 'openid profile email offline_access',
}
