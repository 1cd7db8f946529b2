// Any OAuth 2.0 provider: assumes the standard's names and nothing else. The configuration says the rest.
import type { Preset } from '../preset.ts'

export const oauth2: Preset = {
  kind: 'oauth2',
  clientAuth: 'post',
  fields: {
    sub: ['sub', 'id', 'user_id'],
    username: ['username', 'preferred_username', 'login', 'email', 'sub', 'id'],
    nickname: ['nickname', 'name'],
    email: ['email'],
    phone_number: ['phone_number', 'phone', 'mobile'],
    ou_id: ['ou_id'],
    ou_name: ['ou_name'],
    groups: ['groups'],
  },
  logout: { style: 'none' },
}
