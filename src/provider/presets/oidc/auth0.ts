// Auth0. From its documentation (logout) and Better Auth's client; not tried live.
// A regular web application authenticates by post unless it is set otherwise, whatever the metadata lists. The issuer ends in a slash. A nickname is the first half of an e-mail address, so it is nobody's username.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const auth0: Preset = {
  ...oidc,
  name: 'Auth0',
  issuer: '{auth_url}/',
  clientAuth: 'post',
  scope: 'openid profile email offline_access',
  fields: { ...oidc.fields, username: ['email', 'sub'] },
  accessTokenTypes: ['JWT'],
}
