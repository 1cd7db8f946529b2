// Keycloak. From its documentation (token role mappings, OpenID Connect flows) and source; not tried live.
// Roles are in the access token only, unless a mapper puts them into user info.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const keycloak: Preset = {
  ...oidc,
  name: 'Keycloak',
  variables: { realm: { sentence: 'The realm.' } },
  issuer: '{auth_url}/realms/{realm}',
  userInfoFrom: ['userinfo', 'id_token', 'access_token'],
  fields: { ...oidc.fields, groups: ['groups', 'realm_access.roles', 'resource_access.{client_id}.roles'] },
  accessTokenTypes: ['JWT'],
}
