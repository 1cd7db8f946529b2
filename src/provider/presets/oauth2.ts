// Presets of providers with plain OAuth 2.0, one constant each.

import type { Preset } from './preset.ts'

export const oauth2: Preset = {
  kind: 'oauth2',
  clientAuth: 'post',
  fields: {
    sub: ['sub', 'id', 'user_id'],
    username: ['username', 'preferred_username', 'login', 'email', 'sub', 'id'],
    nickname: ['nickname', 'name'],
    email: ['email'],
    phone_number: ['phone_number', 'phone', 'mobile'],
    ou_id: ['ou_id'],
    ou_name: ['ou_name'],
    groups: ['groups'],
  },
  logout: { style: 'none' },
}

// Alibaba Cloud IDaaS: the provider of docs/specification.md, to the letter. Its tokens may be opaque and are never read.

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

// Feishu (飞书), version 3 of its token address. From the vendor's documentation; not tried live.
// `code` is 0 for a success. union_id stays when the application changes, open_id does not; an e-mail address or a phone
// number is whatever an administrator typed. A refresh token is for one use, and given only with scope offline_access.

export const feishu: Preset = {
  kind: 'oauth2',
  name: 'Feishu',
  nameZh: '飞书',
  variables: {
    auth_url: { description: 'Where users sign in.', default: 'https://accounts.feishu.cn' },
    api_url: { description: 'Its API.', default: 'https://open.feishu.cn' },
  },
  authorizationUrl: '{auth_url}/open-apis/authen/v1/authorize',
  tokenUrl: '{auth_url}/oauth/v3/token',
  userInfoUrl: '{api_url}/open-apis/authen/v1/user_info',
  clientAuth: 'post',
  pkce: true,
  tokenAnswer: { success: { code: [0, null] } },
  // The code is unknown, expired or spent; the refresh token is not valid (or of an older version), expired, revoked or spent.
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

// Bamboocloud (竹云 BAM, IAM), as used by universities and state companies. From public client code; not tried live.
// Parameters are in the address. The token answer identifies the user (uid); if it does not, the user is the only account
// of this application, and no one if there are several. `redirctToUrl` is their spelling.

export const bamboocloud: Preset = {
  kind: 'oauth2',
  name: 'Bamboocloud',
  nameZh: '竹云',
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

// DingTalk (钉钉). From the vendor's documentation and the clients of JustAuth, Casdoor and Logto; not tried live.
// JSON with its own names; the code comes back as authCode. A nick is the user's choice, so it is not used as a username.

export const dingtalk: Preset = {
  kind: 'oauth2',
  name: 'DingTalk',
  nameZh: '钉钉',
  isPublic: true,
  variables: {
    auth_url: { description: 'Where users sign in.', default: 'https://login.dingtalk.com' },
    api_url: { description: 'Its API.', default: 'https://api.dingtalk.com' },
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

// Gitee (码云). From the clients of JustAuth and Casdoor and the vendor's OAuth text; not tried live.
// It refuses calls without a User-Agent, and takes the token in the address.

export const gitee: Preset = {
  kind: 'oauth2',
  name: 'Gitee',
  nameZh: '码云 Gitee',
  isPublic: true,
  variables: { auth_url: { description: 'Its address.', default: 'https://gitee.com' } },
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

// GitHub, and GitHub Enterprise Server. From its documentation (authorizing OAuth apps, refreshing user access tokens) and the
// clients of Logto and Auth.js; not tried live. Errors come with status 200. A token of an OAuth app never expires; only a GitHub
// App can refresh. The address in the profile is often empty, so the primary verified one is requested.

export const github: Preset = {
  kind: 'oauth2',
  name: 'GitHub',
  isPublic: true,
  variables: {
    auth_url: { description: 'Its address.', default: 'https://github.com' },
    api_url: {
      description: 'Its API.',
      default: 'https://api.github.com',
      // Enterprise Server.
      elsewhere: '{auth_url}/api/v3',
    },
  },
  authorizationUrl: '{auth_url}/login/oauth/authorize',
  tokenUrl: '{auth_url}/login/oauth/access_token',
  userInfoUrl: '{api_url}/user',
  clientAuth: 'post',
  scope: 'read:user user:email',
  pkce: true,
  tokenAnswer: { lifetimeSeconds: 28_800 },
  refreshEnds: ['bad_verification_code', 'bad_refresh_token'],
  userInfoFrom: ['userinfo'],
  emailStep: { url: '{user_info_url}/emails', where: { primary: [true], verified: [true] }, take: 'email' },
  fields: { sub: ['id'], username: ['login'], nickname: ['name', 'login'], email: ['email'] },
  logout: { style: 'none' },
}

// Lark, Feishu outside of China: version 2 of the token address, which takes JSON only. From the vendor's documentation; not
// tried live.

export const lark: Preset = {
  ...feishu,
  name: 'Lark',
  variables: {
    auth_url: { description: 'Where users sign in.', default: 'https://accounts.larksuite.com' },
    api_url: { description: 'Its API.', default: 'https://open.larksuite.com' },
  },
  tokenUrl: '{api_url}/open-apis/authen/v2/oauth/token',
  tokenRequest: { as: 'json' },
}

// MaxKey with OAuth 2.0. From its source (token endpoint, user info adapter); not tried live.
// Errors come with status 200, at user info too.

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

// Huawei Cloud OneAccess with OAuth 2.0. From the vendor's documentation (API reference); not tried live.
// The state may contain only letters and digits. There is no refresh token unless its lifetime is set in the console.

export const oneaccess: Preset = {
  kind: 'oauth2',
  name: 'Huawei Cloud OneAccess',
  nameZh: '华为云 OneAccess',
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

// RuoYi-Vue-Pro (芋道, 若依). From its source (OAuth2 controllers and grant service); not tried live.
// The authorization address is a page of the front end. The token request repeats the state; every call names the tenant;
// errors come with status 200.

export const ruoyi: Preset = {
  kind: 'oauth2',
  name: 'RuoYi',
  nameZh: '若依',
  variables: {
    auth_url: { description: 'The front end.' },
    api_url: { description: 'The server, if it is not behind the same address.', default: '{auth_url}' },
    tenant: { description: 'The tenant-id.', default: '1' },
  },
  authorizationUrl: '{auth_url}/sso',
  tokenUrl: '{api_url}/admin-api/system/oauth2/token',
  userInfoUrl: '{api_url}/admin-api/system/oauth2/user/get',
  revocationUrl: '{api_url}/admin-api/system/oauth2/token',
  clientAuth: 'basic',
  scope: 'user.read',
  tokenRequest: { state: true, headers: { 'tenant-id': '{tenant}' } },
  tokenAnswer: { at: 'data', success: { code: [0] } },
  // The refresh token is not valid, or expired.
  refreshEnds: ['400', '401'],
  // Each sign-in has its own tokens, and revoking a refresh token revokes only its own access token.
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

// Sa-Token's OAuth2 server. From its documentation and source; not tried live.
// Fields are beside `code: 200`, which a server can leave out; errors come with status 200. User info has no id: the token
// response identifies the user. Its id_token is signed with a key that is not published, so it is ignored.

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

// WeCom (企业微信), the page with a QR code. From the clients of JustAuth, Casdoor and Logto; not tried live.
// A proprietary flow: a call with the company's token returns the user of the code. The state may contain only letters and
// digits; the status is always 200. CLIENT_ID is the corpid and CLIENT_SECRET the secret of the application.

export const wecom: Preset = {
  kind: 'company_token',
  name: 'WeCom',
  nameZh: '企业微信',
  variables: {
    auth_url: { description: 'Where users sign in.', default: 'https://login.work.weixin.qq.com' },
    api_url: { description: 'Its API.', default: 'https://qyapi.weixin.qq.com' },
    agent: { description: 'The AgentId of the application.' },
  },
  authorizationUrl: '{auth_url}/wwlogin/sso/login',
  tokenUrl: '{api_url}/cgi-bin/gettoken',
  userInfoUrl: '{api_url}/cgi-bin/auth/getuserinfo',
  authorizationNames: { client_id: 'appid', response_type: '', scope: '' },
  authorizationParams: { login_type: 'CorpApp', agentid: '{agent}' },
  state: 'plain',
  tokenAnswer: { success: { errcode: [0] }, lifetimeSeconds: 7200 },
  refreshUrl: false,
  // The code is not valid, spent, or expired.
  refreshEnds: ['40029', '40163', '42003'],
  userInfoAnswer: { success: { errcode: [0] } },
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['userid'],
    username: ['userid'],
    nickname: ['name', 'alias'],
    email: ['biz_mail', 'email'],
    phone_number: ['mobile'],
    ou_id: ['main_department'],
    groups: ['department'],
  },
  logout: { style: 'none' },
}
