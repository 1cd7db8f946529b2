// Feishu (飞书), version 3 of its token address. From the vendor's documentation; not tried live.
// `code` is 0 for a success. union_id stays when the application changes, open_id does not; an e-mail address or a phone
// number is whatever an administrator typed. A refresh token is for one use, and given only with scope offline_access.
import type { Preset } from '../preset.ts'

export const feishu: Preset = {
  kind: 'oauth2',
  name: '飞书',
  variables: {
    auth_url: { sentence: 'Where users sign in.', default: 'https://accounts.feishu.cn' },
    api_url: { sentence: 'Its API.', default: 'https://open.feishu.cn' },
  },
  authorizationUrl: '{auth_url}/open-apis/authen/v1/authorize',
  tokenUrl: '{auth_url}/oauth/v3/token',
  userInfoUrl: '{api_url}/open-apis/authen/v1/user_info',
  clientAuth: 'post',
  pkce: true,
  tokenAnswer: { success: { code: [0, null] } },
  // The code is unknown, late or spent; the refresh token is not valid (that of an older version, too), late, revoked or spent.
  refreshEnds: ['20003', '20004', '20065', '20026', '20037', '20064', '20073'],
  userInfoAnswer: { at: 'data', success: { code: [0] } },
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['union_id'],
    username: ['user_id', 'union_id'],
    nickname: ['name', 'en_name'],
    email: ['enterprise_email', 'email'],
    phone_number: ['mobile'],
    ou_id: ['tenant_key'],
  },
  logout: { style: 'none' },
}
