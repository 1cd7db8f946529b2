// Google. From its documentation (OpenID Connect reference) and the clients of oauth2-proxy and dex; not tried live.
// It names itself with and without https://, and gives a refresh token only for offline access with consent.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const google: Preset = {
  ...oidc,
  name: 'Google',
  variables: { auth_url: { sentence: 'Its address.', default: 'https://accounts.google.com' } },
  alsoIssuers: ['https://accounts.google.com', 'accounts.google.com'],
  authorizationParams: { access_type: 'offline', prompt: 'consent' },
  fields: { ...oidc.fields, username: ['email', 'sub'], ou_id: ['hd'] },
}
