// Logto. From its source (the OpenID Connect core, user claims) and Auth.js; not tried live.
// Like any provider built on oidc-provider it gives a refresh token only with offline_access and consent.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const logto: Preset = {
  ...oidc,
  name: 'Logto',
  issuer: '{auth_url}/oidc',
  scope: 'openid profile email phone roles offline_access',
  authorizationParams: { prompt: 'consent' },
  fields: { ...oidc.fields, username: ['username', 'email', 'sub'], groups: ['roles', 'organizations'] },
}
