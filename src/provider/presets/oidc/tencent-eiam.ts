// Tencent Cloud EIAM (数字身份管控平台). From the vendor's documentation; not tried live.
// User info says nothing of whether an address is verified: it is the organisation's directory.
// Parameters of the token request are in the address; with basic the secret at least is not. No token_type is answered.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const tencentEiam: Preset = {
  ...oidc,
  name: '腾讯云 EIAM',
  scope: 'openid',
  clientAuth: 'basic',
  tokenRequest: { as: 'query' },
  tokenAnswer: { tokenType: 'optional' },
  emailVerified: { email_verified: [true, null] },
  fields: { ...oidc.fields, username: ['username', 'preferred_username', 'email', 'sub'], ou_id: ['ou_id'] },
}
