// DingTalk (钉钉). From the vendor's documentation and the clients of JustAuth, Casdoor and Logto; not tried live.
// JSON with names of its own; the code comes back as authCode. A nick is the user's choice, so it is nobody's username.
import type { Preset } from '../preset.ts'

export const dingtalk: Preset = {
  kind: 'oauth2',
  name: '钉钉',
  variables: {
    auth_url: { sentence: 'Where users sign in.', default: 'https://login.dingtalk.com' },
    api_url: { sentence: 'Its API.', default: 'https://api.dingtalk.com' },
  },
  authorizationUrl: '{auth_url}/oauth2/auth',
  tokenUrl: '{api_url}/v1.0/oauth2/userAccessToken',
  userInfoUrl: '{api_url}/v1.0/contact/users/me',
  clientAuth: 'post',
  scope: 'openid',
  authorizationParams: { prompt: 'consent' },
  codeNames: ['authCode', 'code'],
  tokenRequest: {
    as: 'json',
    names: {
      client_id: 'clientId',
      client_secret: 'clientSecret',
      grant_type: 'grantType',
      refresh_token: 'refreshToken',
    },
    redirectUri: false,
  },
  tokenAnswer: { names: { access_token: 'accessToken', refresh_token: 'refreshToken', expires_in: 'expireIn' } },
  userInfoRequest: { token: { header: 'x-acs-dingtalk-access-token' } },
  userInfoFrom: ['userinfo', 'token'],
  fields: {
    sub: ['unionId'],
    username: ['unionId'],
    nickname: ['nick'],
    email: ['email'],
    phone_number: [['stateCode', 'mobile'], 'mobile'],
    ou_id: ['corpId'],
  },
  logout: { style: 'none' },
}
