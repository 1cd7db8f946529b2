// MaxKey by OAuth 2.0. From its source (token endpoint, user info adapter); not tried live.
// Errors come with status 200, at user info too.
import type { Preset } from '../preset.ts'

export const maxkey: Preset = {
  kind: 'oauth2',
  name: 'MaxKey',
  authorizationUrl: '{auth_url}/sign/authz/oauth/v20/authorize',
  tokenUrl: '{auth_url}/sign/authz/oauth/v20/token',
  userInfoUrl: '{auth_url}/sign/api/oauth/v20/me',
  logoutUrl: '{auth_url}/sign/force/logout',
  clientAuth: 'post',
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['userId'],
    username: ['username'],
    nickname: ['displayName', 'realname'],
    email: ['email'],
    phone_number: ['mobile'],
    ou_id: ['departmentId'],
    ou_name: ['department'],
  },
  logout: { style: 'browser', returnParam: 'redirect_uri' },
}
