// Gitea, and Forgejo, which is assumed to be alike. From Gitea's source (OAuth2 provider); not tried live.
// It says unauthorized_client of a refresh token that is spent or unknown.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const gitea: Preset = {
  ...oidc,
  name: 'Gitea',
  scope: 'openid profile email groups',
  refreshEnds: ['unauthorized_client'],
}
