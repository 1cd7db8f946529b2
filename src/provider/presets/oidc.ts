// Presets of providers with OpenID Connect, one constant each.

import type { Preset } from './preset.ts'

export const oidc: Preset = {
  kind: 'oidc',
  issuer: '{auth_url}',
  scope: 'openid profile email',
  pkce: true,
  tokenAnswer: { tokenType: 'required' },
  userInfoFrom: ['userinfo', 'id_token'],
  fields: {
    sub: ['sub'],
    username: ['preferred_username', 'email', 'sub'],
    nickname: ['nickname', 'name'],
    email: ['email'],
    phone_number: ['phone_number'],
    ou_id: [],
    ou_name: [],
    groups: ['groups'],
  },
  logout: { idTokenHint: true },
}

// Alibaba Cloud IDaaS EIAM, the newer of its two. From the vendor's documentation and API types; not tried live.
// The browser's endpoints are on a different host from the others. There is no offline_access: refreshing is enabled in the
// console.

// An e-mail address without a verdict comes from the organisation's directory.

export const aliyunEiam: Preset = {
  ...oidc,
  name: 'Alibaba Cloud IDaaS',
  nameZh: '阿里云 IDaaS',
  variables: {
    auth_url: { description: 'The API endpoint of the region.', default: 'https://eiam-api-cn-hangzhou.aliyuncs.com' },
    instance: { description: 'The instance id, idaas_….' },
    app: { description: 'The application id, app_….' },
  },
  issuer: '{auth_url}/v2/{instance}/{app}/oidc',
  scope: 'openid profile email phone',
  emailVerified: { email_verified: [true, null] },
}

// Auth0. From its documentation (logout) and Better Auth's client; not tried live.
// A regular web application authenticates by post unless it is configured otherwise, whatever the metadata lists. The issuer ends
// in a slash. A nickname is the first half of an e-mail address, so it is not used as a username.

export const auth0: Preset = {
  ...oidc,
  name: 'Auth0',
  issuer: '{auth_url}/',
  clientAuth: 'post',
  scope: 'openid profile email offline_access',
  fields: { ...oidc.fields, username: ['email', 'sub'] },
  accessTokenTypes: ['JWT'],
}

// Authelia. From its documentation (OpenID Connect provider and clients); not tried live.
// It accepts only the scopes and the authentication method that the client is registered with.

export const authelia: Preset = {
  ...oidc,
  name: 'Authelia',
  scope: 'openid profile email groups offline_access',
}

// authentik. From its documentation (OAuth2 provider) and source; not tried live.
// The issuer ends in a slash; a refresh token rotates at every use.

export const authentik: Preset = {
  ...oidc,
  name: 'authentik',
  variables: { app: { description: 'The slug of the application.' } },
  issuer: '{auth_url}/application/o/{app}/',
  scope: 'openid profile email offline_access',
  accessTokenTypes: ['JWT'],
}

// Authing. From its documentation and public client code; not tried live.
// AUTH_URL is the application's own host, https://APP.authing.cn.

export const authing: Preset = {
  ...oidc,
  name: 'Authing',
  issuer: '{auth_url}/oidc',
  clientAuth: 'post',
  scope: 'openid profile email phone offline_access',
  fields: { ...oidc.fields, username: ['username', 'preferred_username', 'email', 'phone_number', 'sub'] },
}

// Casdoor. From its source (discovery, user info, token controllers); not tried live.
// A bad token at user info is answered with status 200 and `status: error`.

export const casdoor: Preset = {
  ...oidc,
  name: 'Casdoor',
  scope: 'openid profile email phone offline_access',
  userInfoAnswer: { success: { status: [null, 'ok'] } },
  fields: { ...oidc.fields, phone_number: ['phone', 'phone_number'], groups: ['groups', 'roles'] },
  accessTokenTypes: ['JWT'],
}

// Microsoft Entra ID. From Microsoft's documentation (OpenID Connect, user info) and the clients of Auth.js and oauth2-proxy; not
// tried live. For several tenants the issuer is a template that the token's `tid` fills. `sub` differs from application to
// application, so tenant and object together are the key. It has no email_verified: with one tenant the address is the
// directory's; with several, the administrator of any tenant can set any address, and only the optional claim xms_edov vouches
// for it. Groups are left out of a token if there are too many of them.

export const entra: Preset = {
  ...oidc,
  name: 'Microsoft',
  variables: {
    auth_url: { description: 'Its address.', default: 'https://login.microsoftonline.com' },
    tenant: { description: 'The directory (tenant) id, or `organizations` or `common` for several.' },
  },
  issuer: '{auth_url}/{tenant}/v2.0',
  alsoIssuers: [
    'https://login.microsoftonline.com/{tenantid}/v2.0',
    'https://login.partner.microsoftonline.cn/{tenantid}/v2.0',
  ],
  clientAuth: 'post',
  clientAssertionAudience: 'token_endpoint',
  clientAssertionAlgorithm: 'PS256',
  scope: 'openid profile email offline_access',
  // An API whose manifest does not ask for version 2 gets tokens of version 1.
  accessTokenIssuers: ['https://sts.windows.net/{tenantid}/', 'https://sts.chinacloudapi.cn/{tenantid}/'],
  emailVerified: { xms_edov: [true, 'true', 1, '1', null] },
  openTenants: ['common', 'organizations', 'consumers'],
  refreshParams: { scope: '{scope}' },
  fields: {
    ...oidc.fields,
    sub: [['tid', 'oid']],
    username: ['preferred_username', 'upn', 'email', 'sub'],
    ou_id: ['tid'],
    groups: ['roles', 'groups'],
  },
  accessTokenTypes: ['JWT'],
}

// Gitea, and Forgejo, which is assumed to be alike. From Gitea's source (OAuth2 provider); not tried live.
// It answers unauthorized_client for a refresh token that is spent or unknown.

export const gitea: Preset = {
  ...oidc,
  name: 'Gitea',
  scope: 'openid profile email groups',
  refreshEnds: ['unauthorized_client'],
}

// GitLab. From its documentation (OAuth 2.0 API, OpenID Connect provider); not tried live.
// `nickname` is the login, and older instances have no other claim for it. A refresh revokes the old tokens immediately, and its
// request carries the redirect address.

export const gitlab: Preset = {
  ...oidc,
  name: 'GitLab',
  isPublic: true,
  variables: { auth_url: { description: 'The instance.', default: 'https://gitlab.com' } },
  clientAuth: 'post',
  fields: {
    ...oidc.fields,
    username: ['preferred_username', 'nickname', 'email', 'sub'],
    nickname: ['name', 'nickname'],
  },
  refreshParams: { redirect_uri: '$redirect_uri' },
}

// Google. From its documentation (OpenID Connect reference) and the clients of oauth2-proxy and dex; not tried live.
// It names itself with and without https://, and issues a refresh token only for offline access with consent.

export const google: Preset = {
  ...oidc,
  name: 'Google',
  isPublic: true,
  variables: { auth_url: { description: 'Its address.', default: 'https://accounts.google.com' } },
  alsoIssuers: ['https://accounts.google.com', 'accounts.google.com'],
  authorizationParams: { access_type: 'offline', prompt: 'consent' },
  fields: { ...oidc.fields, username: ['email', 'sub'], ou_id: ['hd'] },
}

// Keycloak. From its documentation (token role mappings, OpenID Connect flows) and source; not tried live.
// Roles are in the access token only, unless a mapper puts them into user info.

export const keycloak: Preset = {
  ...oidc,
  name: 'Keycloak',
  variables: { realm: { description: 'The realm.' } },
  issuer: '{auth_url}/realms/{realm}',
  userInfoFrom: ['userinfo', 'id_token', 'access_token'],
  fields: { ...oidc.fields, groups: ['groups', 'realm_access.roles', 'resource_access.{client_id}.roles'] },
  accessTokenTypes: ['JWT'],
}

// Logto. From its source (the OpenID Connect core, user claims) and Auth.js; not tried live.
// Like any provider built on oidc-provider, it issues a refresh token only with offline_access and consent.

export const logto: Preset = {
  ...oidc,
  name: 'Logto',
  issuer: '{auth_url}/oidc',
  scope: 'openid profile email phone roles offline_access',
  authorizationParams: { prompt: 'consent' },
  fields: { ...oidc.fields, username: ['username', 'email', 'sub'], groups: ['roles', 'organizations'] },
}

// Okta. From its documentation (authorization servers) and the clients of JustAuth and Better Auth; not tried live.

export const okta: Preset = {
  ...oidc,
  name: 'Okta',
  variables: { server: { description: 'The authorization server.', default: 'default' } },
  issuer: '{auth_url}/oauth2/{server}',
  clientAssertionAudience: 'token_endpoint',
  scope: 'openid profile email offline_access',
}

// Tencent Cloud EIAM (数字身份管控平台). From the vendor's documentation; not tried live.
// User info does not say whether an e-mail address is verified: it comes from the organisation's directory.
// Parameters of the token request are in the address; with basic, at least the secret is not. The answer has no token_type.

export const tencentEiam: Preset = {
  ...oidc,
  name: 'Tencent Cloud EIAM',
  nameZh: '腾讯云 EIAM',
  scope: 'openid',
  clientAuth: 'basic',
  tokenRequest: { as: 'query' },
  tokenAnswer: { tokenType: 'optional' },
  emailVerified: { email_verified: [true, null] },
  fields: { ...oidc.fields, username: ['username', 'preferred_username', 'email', 'sub'], ou_id: ['ou_id'] },
}

// ZITADEL. From its documentation (scopes, claims) and source; not tried live.
// Roles are the keys of an object; the organisation is the one that owns the user.

export const zitadel: Preset = {
  ...oidc,
  name: 'ZITADEL',
  scope:
    'openid profile email phone offline_access urn:zitadel:iam:org:projects:roles urn:zitadel:iam:user:resourceowner',
  fields: {
    ...oidc.fields,
    ou_id: ['urn:zitadel:iam:user:resourceowner:id'],
    ou_name: ['urn:zitadel:iam:user:resourceowner:name'],
    groups: ['urn:zitadel:iam:org:project:roles'],
  },
}
