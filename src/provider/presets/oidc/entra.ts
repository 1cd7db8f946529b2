// Microsoft Entra ID. From Microsoft's documentation (OpenID Connect, user info) and the clients of Auth.js and oauth2-proxy;
// not tried live. For several tenants the issuer is a template that the token's `tid` fills. `sub` differs from application
// to application, so that tenant and object are the key. It has no email_verified: within one tenant the address is the
// directory's; of several, whoever runs a tenant can write any address, and only the optional claim xms_edov vouches for it. Groups are left out of a token if there are too many of them.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const entra: Preset = {
  ...oidc,
  name: 'Microsoft',
  variables: {
    auth_url: { sentence: 'Its address.', default: 'https://login.microsoftonline.com' },
    tenant: { sentence: 'The directory (tenant) id, or `organizations` or `common` for several.' },
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
