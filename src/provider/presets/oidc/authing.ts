// Authing. From its documentation and public client code; not tried live.
// AUTH_URL is the application's own host, https://APP.authing.cn.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const authing: Preset = {
  ...oidc,
  name: 'Authing',
  issuer: '{auth_url}/oidc',
  clientAuth: 'post',
  scope: 'openid profile email phone offline_access',
  fields: { ...oidc.fields, username: ['username', 'preferred_username', 'email', 'phone_number', 'sub'] },
}
