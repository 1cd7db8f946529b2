// GitLab. From its documentation (OAuth 2.0 API, OpenID Connect provider); not tried live.
// `nickname` is the login, and older instances have no other claim for it. A refresh ends the old tokens at once, and carries the redirect address.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

export const gitlab: Preset = {
  ...oidc,
  name: 'GitLab',
  variables: { auth_url: { sentence: 'The instance.', default: 'https://gitlab.com' } },
  clientAuth: 'post',
  fields: {
    ...oidc.fields,
    username: ['preferred_username', 'nickname', 'email', 'sub'],
    nickname: ['name', 'nickname'],
  },
  refreshParams: { redirect_uri: '$redirect_uri' },
}
