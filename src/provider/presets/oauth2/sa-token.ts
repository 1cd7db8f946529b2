// Sa-Token's OAuth2 server. From its documentation and source; not tried live.
// Fields stand beside `code: 200`, which a server can leave out; errors come with status 200. User info has no id: the token
// answer says who the user is. Its id_token is signed with a key that nobody else has, so it is not looked at.
import type { Preset } from '../preset.ts'

export const saToken: Preset = {
  kind: 'oauth2',
  authorizationUrl: '{auth_url}/oauth2/authorize',
  tokenUrl: '{auth_url}/oauth2/token',
  refreshUrl: '{auth_url}/oauth2/refresh',
  userInfoUrl: '{auth_url}/oauth2/userinfo',
  revocationUrl: '{auth_url}/oauth2/revoke',
  clientAuth: 'post',
  scope: 'openid userid userinfo',
  scopeSeparator: ',',
  tokenAnswer: { success: { code: [200, null] } },
  revocationRequest: { names: { token: 'access_token' }, token: 'access_token' },
  userInfoAnswer: { success: { code: [200, null] } },
  userInfoFrom: ['userinfo', 'token'],
  fields: {
    sub: ['openid', 'unionid', 'userid'],
    username: ['username', 'userid', 'openid'],
    nickname: ['nickname'],
    email: ['email'],
    phone_number: ['phone'],
  },
  logout: { style: 'none' },
}
