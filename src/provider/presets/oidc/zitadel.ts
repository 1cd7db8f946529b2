// ZITADEL. From its documentation (scopes, claims) and source; not tried live.
// Roles are the keys of an object; the organisation is the one that owns the user.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

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
