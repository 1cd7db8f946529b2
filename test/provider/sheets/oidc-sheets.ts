// The providers with OpenID Connect that organisations run themselves, one sheet each.
import type { Sheet } from '../sheet.ts'
import { KNOWN, oidcSheet, PERSON } from './oidc-sheet.ts'

/** What Keycloak puts into its access tokens. Nobody checks the signature of one that came from the token address. */
const unsigned = (claims: object) =>
  `${[{ alg: 'RS256' }, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.c2ln`

const KEYCLOAK_TOKEN = unsigned({
  realm_access: { roles: ['offline_access', 'auditor'] },
  resource_access: { 'app-1': { roles: ['editor'] }, other: { roles: ['not-ours'] } },
})

export const OIDC_SHEETS: Readonly<Record<string, Sheet>> = {
  oidc: oidcSheet({
    config: { vars: { auth_url: 'https://idp.example.com/tenant' } },
    issuer: 'https://idp.example.com/tenant',
    scope: 'openid profile email',
    authorization: '/authorize',
    token: '/token',
    userInfo: '/userinfo',
    endSession: '/logout',
    revocation: '/revoke',
    said: { ...PERSON, preferred_username: 'lisi', groups: ['a', 'b'] },
    user: { ...KNOWN, username: 'lisi' },
    groups: ['a', 'b'],
  }),

  // Roles are in the access token only; groups are paths.
  keycloak: withAccessToken(
    KEYCLOAK_TOKEN,
    oidcSheet({
      config: { vars: { auth_url: 'https://sso.example.com', realm: 'staff' } },
      issuer: 'https://sso.example.com/realms/staff',
      scope: 'openid profile email',
      authorization: '/realms/staff/protocol/openid-connect/auth',
      token: '/realms/staff/protocol/openid-connect/token',
      userInfo: '/realms/staff/protocol/openid-connect/userinfo',
      endSession: '/realms/staff/protocol/openid-connect/logout',
      revocation: '/realms/staff/protocol/openid-connect/revoke',
      tokenAnswer: {
        access_token: KEYCLOAK_TOKEN,
        refresh_expires_in: 0,
        'not-before-policy': 0,
        session_state: 'x',
        scope: 'openid',
      },
      said: { ...PERSON, preferred_username: 'lisi', groups: ['/finance/audit'] },
      user: { ...KNOWN, username: 'lisi' },
      groups: ['/finance/audit', 'offline_access', 'auditor', 'editor'],
    }),
  ),

  casdoor: oidcSheet({
    config: { vars: { auth_url: 'https://door.example.com' } },
    issuer: 'https://door.example.com',
    scope: 'openid profile email phone offline_access',
    authorization: '/login/oauth/authorize',
    token: '/api/login/oauth/access_token',
    userInfo: '/api/userinfo',
    endSession: '/api/logout',
    said: { ...PERSON, preferred_username: 'lisi', phone: '13811111111', groups: ['org/a'], roles: ['r1'] },
    user: { ...KNOWN, username: 'lisi', phone_number: '13811111111' },
    groups: ['org/a', 'r1'],
    errors: [['fetchUser', { body: { status: 'error', msg: 'token is invalid', sub: '' } }, 'provider_answer']],
  }),

  authing: oidcSheet({
    config: { vars: { auth_url: 'https://corp.authing.cn' } },
    issuer: 'https://corp.authing.cn/oidc',
    scope: 'openid profile email phone offline_access',
    clientAuths: ['client_secret_post', 'client_secret_basic', 'none'],
    auth: 'post',
    authorization: '/oidc/auth',
    token: '/oidc/token',
    userInfo: '/oidc/me',
    endSession: '/oidc/session/end',
    said: { ...PERSON, username: 'lisi', preferred_username: null, phone_number: '13811111111' },
    user: { ...KNOWN, username: 'lisi', phone_number: '13811111111' },
  }),

  logto: oidcSheet({
    config: { vars: { auth_url: 'https://login.example.com' } },
    issuer: 'https://login.example.com/oidc',
    scope: 'openid profile email phone roles offline_access',
    authorizeParams: { prompt: 'consent' },
    authorization: '/oidc/auth',
    token: '/oidc/token',
    userInfo: '/oidc/me',
    endSession: '/oidc/session/end',
    revocation: '/oidc/token/revocation',
    tokenAnswer: { refresh_token: 'rt-1' },
    said: { ...PERSON, username: 'lisi', roles: ['admin'], organizations: ['org-1'] },
    user: { ...KNOWN, username: 'lisi' },
    groups: ['admin', 'org-1'],
  }),

  // Several audiences, so that azp counts; roles are keys; the profile is in user info only.
  zitadel: oidcSheet({
    config: { vars: { auth_url: 'https://corp.zitadel.cloud' } },
    issuer: 'https://corp.zitadel.cloud',
    scope:
      'openid profile email phone offline_access urn:zitadel:iam:org:projects:roles urn:zitadel:iam:user:resourceowner',
    authorization: '/oauth/v2/authorize',
    token: '/oauth/v2/token',
    userInfo: '/oidc/v1/userinfo',
    endSession: '/oidc/v1/end_session',
    revocation: '/oauth/v2/revoke',
    claims: { aud: ['app-1', '2711', '2712'], azp: 'app-1' },
    said: {
      ...PERSON,
      preferred_username: 'lisi@corp.zitadel.cloud',
      'urn:zitadel:iam:user:resourceowner:id': '2700',
      'urn:zitadel:iam:user:resourceowner:name': 'Corp',
      'urn:zitadel:iam:org:project:roles': { auditor: { 2700: 'corp.zitadel.cloud' }, editor: {} },
    },
    user: { ...KNOWN, username: 'lisi@corp.zitadel.cloud', ou_id: '2700', ou_name: 'Corp' },
    groups: ['auditor', 'editor'],
  }),

  authentik: oidcSheet({
    config: { vars: { auth_url: 'https://auth.example.com', app: 'reports' } },
    issuer: 'https://auth.example.com/application/o/reports',
    calledIssuer: 'https://auth.example.com/application/o/reports/',
    scope: 'openid profile email offline_access',
    authorization: '/application/o/authorize/',
    token: '/application/o/token/',
    userInfo: '/application/o/userinfo/',
    endSession: '/application/o/reports/end-session/',
    revocation: '/application/o/revoke/',
    said: { ...PERSON, nickname: 'lisi', preferred_username: 'lisi', groups: ['staff'], email_verified: false },
    user: { nickname: 'lisi', username: 'lisi' },
    groups: ['staff'],
  }),

  authelia: oidcSheet({
    config: { vars: { auth_url: 'https://auth.example.com' } },
    issuer: 'https://auth.example.com',
    scope: 'openid profile email groups offline_access',
    authorization: '/api/oidc/authorization',
    token: '/api/oidc/token',
    userInfo: '/api/oidc/userinfo',
    revocation: '/api/oidc/revocation',
    said: { ...PERSON, preferred_username: 'lisi', groups: ['admins'], alt_emails: [] },
    user: { ...KNOWN, username: 'lisi' },
    groups: ['admins'],
  }),
}

function withAccessToken(accessToken: string, sheet: Sheet): Sheet {
  return {
    ...sheet,
    tokens: { ...sheet.tokens, accessToken },
    fetchUser: sheet.fetchUser.map(sent => ({ ...sent, auth: `Bearer ${accessToken}` })),
  }
}
