// Casdoor. From its source (discovery, user info, token controllers); not tried live.
// A bad token at user info is answered with status 200 and `status: error`.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const casdoor: Preset = {
  ...oidc,
  name: 'Casdoor',
  scope: 'openid profile email phone offline_access',
  userInfoAnswer: { success: { status: [null, 'ok'] } },
  fields: { ...oidc.fields, phone_number: ['phone', 'phone_number'], groups: ['groups', 'roles'] },
  accessTokenTypes: ['JWT'],
}
