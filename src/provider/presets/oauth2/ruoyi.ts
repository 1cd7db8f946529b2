// RuoYi-Vue-Pro (芋道, 若依). From its source (OAuth2 controllers and grant service); not tried live.
// The authorization address is a page of the front end. The token request repeats the state; every call names the tenant;
// errors come with status 200.
import type { Preset } from '../preset.ts'

export const ruoyi: Preset = {
  kind: 'oauth2',
  name: '若依',
  variables: {
    auth_url: { sentence: 'The front end.' },
    api_url: { sentence: 'The server, if it is not behind the same address.', default: '{auth_url}' },
    tenant: { sentence: 'The tenant-id.', default: '1' },
  },
  authorizationUrl: '{auth_url}/sso',
  tokenUrl: '{api_url}/admin-api/system/oauth2/token',
  userInfoUrl: '{api_url}/admin-api/system/oauth2/user/get',
  revocationUrl: '{api_url}/admin-api/system/oauth2/token',
  clientAuth: 'basic',
  scope: 'user.read',
  tokenRequest: { state: true, headers: { 'tenant-id': '{tenant}' } },
  tokenAnswer: { at: 'data', success: { code: [0] } },
  // The refresh token is not valid, or late.
  refreshEnds: ['400', '401'],
  // Each sign-in has tokens of its own, and one access token ends with its refresh token alone.
  revoke: 'always',
  revocationRequest: { method: 'DELETE', as: 'query', token: 'access_token' },
  userInfoRequest: { headers: { 'tenant-id': '{tenant}' } },
  userInfoAnswer: { at: 'data', success: { code: [0] } },
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['id'],
    username: ['username'],
    nickname: ['nickname'],
    email: ['email'],
    phone_number: ['mobile'],
    ou_id: ['dept.id'],
    ou_name: ['dept.name'],
    groups: ['posts.name'],
  },
  logout: { style: 'none' },
}
