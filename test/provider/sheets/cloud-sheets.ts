// The providers with OpenID Connect that are services, or code forges, one sheet each.
import type { Sheet } from '../sheet.ts'
import { KNOWN, oidcSheet, PERSON } from './oidc-sheet.ts'

export const CLOUD_SHEETS: Readonly<Record<string, Sheet>> = {
  auth0: oidcSheet({
    config: { vars: { auth_url: 'https://corp.eu.auth0.com' } },
    issuer: 'https://corp.eu.auth0.com',
    calledIssuer: 'https://corp.eu.auth0.com/',
    scope: 'openid profile email offline_access',
    clientAuths: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    auth: 'post',
    authorization: '/authorize',
    token: '/oauth/token',
    userInfo: '/userinfo',
    endSession: '/oidc/logout',
    revocation: '/oauth/revoke',
    said: { ...PERSON, nickname: 'admin', email: 'admin@elsewhere.example' },
    user: { nickname: 'admin', email: 'admin@elsewhere.example', username: 'admin@elsewhere.example' },
  }),

  okta: oidcSheet({
    config: { vars: { auth_url: 'https://corp.okta.com' } },
    issuer: 'https://corp.okta.com/oauth2/default',
    scope: 'openid profile email offline_access',
    authorization: '/oauth2/default/v1/authorize',
    token: '/oauth2/default/v1/token',
    userInfo: '/oauth2/default/v1/userinfo',
    endSession: '/oauth2/default/v1/logout',
    revocation: '/oauth2/default/v1/revoke',
    said: { ...PERSON, preferred_username: 'lisi@example.com' },
    user: { ...KNOWN, username: 'lisi@example.com' },
  }),

  // It calls itself accounts.google.com in the id_token.
  google: oidcSheet({
    issuer: 'https://accounts.google.com',
    scope: 'openid profile email',
    authorizeParams: { access_type: 'offline', prompt: 'consent' },
    clientAuths: ['client_secret_post', 'client_secret_basic'],
    authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
    token: 'https://oauth2.googleapis.com/token',
    userInfo: 'https://openidconnect.googleapis.com/v1/userinfo',
    revocation: 'https://oauth2.googleapis.com/revoke',
    claims: { iss: 'accounts.google.com', azp: 'app-1', hd: 'example.com' },
    said: { ...PERSON, email_verified: true, picture: 'https://x', hd: 'example.com' },
    user: { ...KNOWN, username: 'lisi@example.com', ou_id: 'example.com' },
  }),

  // For several tenants: the metadata has a hole where the tenant of the token belongs.
  entra: oidcSheet({
    config: { vars: { tenant: 'organizations' } },
    issuer: 'https://login.microsoftonline.com/organizations/v2.0',
    calledIssuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    scope: 'openid profile email offline_access',
    clientAuths: ['client_secret_post', 'private_key_jwt'],
    auth: 'post',
    authorization: '/organizations/oauth2/v2.0/authorize',
    token: '/organizations/oauth2/v2.0/token',
    userInfo: 'https://graph.microsoft.com/oidc/userinfo',
    endSession: '/organizations/oauth2/v2.0/logout',
    refreshParams: { scope: 'openid profile email offline_access' },
    claims: {
      iss: 'https://login.microsoftonline.com/0f-tenant/v2.0',
      tid: '0f-tenant',
      oid: '77-object',
      preferred_username: 'lisi@example.com',
      roles: ['Auditor'],
      groups: ['g-1'],
    },
    said: { ...PERSON, picture: 'https://graph.microsoft.com/v1.0/me/photo/$value' },
    // Of several tenants, nobody vouches for an address.
    user: { nickname: '李四', sub: '0f-tenant-77-object', username: 'lisi@example.com', ou_id: '0f-tenant' },
    groups: ['Auditor', 'g-1'],
    errors: [['redeem', { status: 400, body: { error: 'invalid_grant', error_codes: [70008] } }, 'provider_refused']],
  }),

  gitlab: oidcSheet({
    issuer: 'https://gitlab.com',
    scope: 'openid profile email',
    auth: 'post',
    authorization: '/oauth/authorize',
    token: '/oauth/token',
    userInfo: '/oauth/userinfo',
    revocation: '/oauth/revoke',
    tokenAnswer: { created_at: 1_607_635_748 },
    refreshParams: { redirect_uri: 'https://app.example.com/callback/scene' },
    claims: { groups_direct: ['g1'] },
    // An older instance: the login is in nickname alone.
    said: { ...PERSON, nickname: 'lisi', groups: ['g1', 'g1/sub'] },
    user: { ...KNOWN, username: 'lisi' },
    groups: ['g1', 'g1/sub'],
  }),

  gitea: oidcSheet({
    config: { vars: { auth_url: 'https://git.example.com' } },
    issuer: 'https://git.example.com',
    calledIssuer: 'https://git.example.com/',
    scope: 'openid profile email groups',
    authorization: '/login/oauth/authorize',
    token: '/login/oauth/access_token',
    userInfo: '/login/oauth/userinfo',
    said: { ...PERSON, preferred_username: 'lisi', groups: ['org', 'org:team'] },
    user: { ...KNOWN, username: 'lisi' },
    groups: ['org', 'org:team'],
    errors: [
      ['refresh', { status: 400, body: { error: 'unauthorized_client' } }, 'provider_refused'],
      ['fetchUser', { status: 401, body: 'no valid authorization', type: 'text/plain' }, 'provider_answer'],
    ],
  }),

  // The browser's endpoints are on another host.
  'aliyun-eiam': oidcSheet({
    config: { vars: { instance: 'idaas_1', app: 'app_1' } },
    issuer: 'https://eiam-api-cn-hangzhou.aliyuncs.com/v2/idaas_1/app_1/oidc',
    scope: 'openid profile email phone',
    authorization: 'https://corp.aliyunidaas.com/login/app/app_1/oauth2/authorize',
    token: '/v2/idaas_1/app_1/oauth2/token',
    userInfo: '/v2/idaas_1/app_1/oauth2/userinfo',
    endSession: 'https://corp.aliyunidaas.com/login/app/app_1/oauth2/logout',
    revocation: '/v2/idaas_1/app_1/oauth2/revoke',
    said: { ...PERSON, preferred_username: 'lisi', phone_number: '13811111111' },
    user: { ...KNOWN, username: 'lisi', phone_number: '13811111111' },
  }),

  'tencent-eiam': oidcSheet({
    config: { vars: { auth_url: 'https://corp.tencenteiam.com' } },
    issuer: 'https://corp.tencenteiam.com',
    scope: 'openid',
    as: 'query',
    authorization: '/auth/oauth2/authorize',
    token: '/auth/oauth2/token',
    userInfo: '/auth/oauth2/userinfo',
    tokenAnswer: { token_type: undefined },
    said: { username: 'lisi', nickname: '李四', email: 'lisi@example.com', phone_number: '+86-150', ou_id: 'ou-1' },
    user: { ...KNOWN, username: 'lisi', phone_number: '+86-150', ou_id: 'ou-1' },
  }),
}
