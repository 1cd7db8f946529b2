// Bamboocloud (竹云 BAM, IAM), as universities and state companies have it. From public client code; not tried live.
// Parameters are in the address. The token answer says who the user is (uid); where it does not, the user is the only account
// of this application, and nobody if there are several. `redirctToUrl` is spelled so.
import type { Preset } from '../preset.ts'

export const bamboocloud: Preset = {
  kind: 'oauth2',
  name: '竹云',
  authorizationUrl: '{auth_url}/idp/oauth2/authorize',
  tokenUrl: '{auth_url}/idp/oauth2/getToken',
  refreshUrl: '{auth_url}/idp/oauth2/refreshToken',
  userInfoUrl: '{auth_url}/idp/oauth2/getUserInfo',
  logoutUrl: '{auth_url}/idp/profile/OAUTH2/Redirect/GLO',
  clientAuth: 'post',
  tokenRequest: { as: 'query', redirectUri: false },
  tokenAnswer: { success: { errcode: [null, 0, '0'] } },
  userInfoRequest: { token: { query: 'access_token' }, params: { client_id: '{client_id}' } },
  userInfoAnswer: { success: { errcode: [null, 0, '0'] } },
  userInfoFrom: ['userinfo', 'token'],
  fields: {
    sub: ['uid', 'spRoleList.only'],
    username: ['loginName', 'spRoleList.only', 'uid'],
    nickname: ['displayName', 'fullName'],
    email: ['mail'],
    ou_name: ['orgNamePath'],
  },
  logout: {
    style: 'browser',
    returnParam: 'redirctToUrl',
    params: { redirectToLogin: 'true', entityId: '{client_id}' },
  },
}
