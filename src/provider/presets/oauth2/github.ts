// GitHub, and GitHub Enterprise Server. From its documentation (authorizing OAuth apps, refreshing user access tokens) and the
// clients of Logto and Auth.js; not tried live. Errors come with status 200. A token of an OAuth app has no end; only a GitHub
// App can refresh. The address in the profile is often empty, so the primary verified one is asked for.
import type { Preset } from '../preset.ts'

export const github: Preset = {
  kind: 'oauth2',
  name: 'GitHub',
  variables: {
    auth_url: { sentence: 'Its address.', default: 'https://github.com' },
    api_url: {
      sentence: 'Its API.',
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
  emailStep: { url: '{api_url}/user/emails', where: { primary: [true], verified: [true] }, take: 'email' },
  fields: { sub: ['id'], username: ['login'], nickname: ['name', 'login'], email: ['email'] },
  logout: { style: 'none' },
}
