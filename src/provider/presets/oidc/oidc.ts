// Any provider with OpenID Connect Discovery at AUTH_URL.
import type { Preset } from '../preset.ts'

export const oidc: Preset = {
  kind: 'oidc',
  issuer: '{auth_url}',
  scope: 'openid profile email',
  pkce: true,
  tokenAnswer: { tokenType: 'required' },
  userInfoFrom: ['userinfo', 'id_token'],
  fields: {
    sub: ['sub'],
    username: ['preferred_username', 'email', 'sub'],
    nickname: ['nickname', 'name'],
    email: ['email'],
    phone_number: ['phone_number'],
    ou_id: [],
    ou_name: [],
    groups: ['groups'],
  },
  logout: { idTokenHint: true },
}
