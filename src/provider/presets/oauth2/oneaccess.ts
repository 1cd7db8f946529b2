// Huawei Cloud OneAccess by OAuth 2.0. From the vendor's documentation (API reference); not tried live.
// The state may have letters and digits only. No refresh token unless its lifetime is set in the console.
import type { Preset } from '../preset.ts'

export const oneaccess: Preset = {
  kind: 'oauth2',
  name: '华为云 OneAccess',
  authorizationUrl: '{auth_url}/api/v1/oauth2/authorize',
  tokenUrl: '{auth_url}/api/v1/oauth2/token',
  userInfoUrl: '{auth_url}/api/v1/oauth2/userinfo',
  logoutUrl: '{auth_url}/api/v1/logout',
  clientAuth: 'post',
  scope: 'get_user_info',
  state: 'plain',
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['id'],
    username: ['userName'],
    nickname: ['name'],
    email: ['email'],
    phone_number: ['mobile'],
    ou_id: ['organizationCode'],
    ou_name: ['organizationName'],
    groups: ['role'],
  },
  logout: { style: 'browser', returnParam: 'redirect_url' },
}
