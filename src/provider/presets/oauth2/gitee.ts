// Gitee (码云). From the clients of JustAuth and Casdoor and the vendor's OAuth text; not tried live.
// It refuses calls without a User-Agent, and takes the token in the address.
import type { Preset } from '../preset.ts'

export const gitee: Preset = {
  kind: 'oauth2',
  name: '码云 Gitee',
  variables: { auth_url: { sentence: 'Its address.', default: 'https://gitee.com' } },
  authorizationUrl: '{auth_url}/oauth/authorize',
  tokenUrl: '{auth_url}/oauth/token',
  userInfoUrl: '{auth_url}/api/v5/user',
  clientAuth: 'post',
  scope: 'user_info emails',
  userInfoRequest: { token: { query: 'access_token' } },
  userInfoFrom: ['userinfo'],
  fields: { sub: ['id'], username: ['login'], nickname: ['name', 'login'], email: ['email'] },
  logout: { style: 'none' },
}
