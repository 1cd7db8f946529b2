// The specification's provider: Alibaba Cloud IDaaS, to the letter. Its tokens may be opaque and are never read.
import type { Preset } from '../preset.ts'

export const idaas: Preset = {
  kind: 'oauth2',
  authorizationUrl: '{auth_url}/oauth/authorize',
  tokenUrl: '{auth_url}/oauth/token',
  userInfoUrl: '{auth_url}/api/bff/v1.2/oauth2/userinfo',
  logoutUrl: '{auth_url}/oauth/logout',
  clientAuth: 'post',
  scope: 'read',
  stateCheck: 'suffix',
  pkce: false,
  refreshLead: 'fixed',
  tokenAnswer: { tokenType: 'required' },
  userInfoAnswer: { at: 'data', success: { success: [true], code: ['200', 200, null] } },
  userInfoFrom: ['userinfo'],
  fieldTypes: 'text',
  fields: {
    sub: ['sub'],
    username: ['username'],
    nickname: ['nickname'],
    email: ['email'],
    phone_number: ['phone_number'],
    ou_id: ['ou_id'],
    ou_name: ['ou_name'],
    groups: ['groups'],
  },
  logout: { style: 'server', returnParam: 'redirect_url' },
}
