// The provider of docs/specification.md, the one of everything by configuration, and others of plain OAuth 2.0, one sheet each.
import {
  ASKED,
  BAD_CLIENT,
  BAD_CODE,
  CLIENT_ID,
  CODE_GRANT,
  HELD,
  LOGIN,
  PKCE,
  POST,
  REDIRECT_URI,
  REFRESH_GRANT,
  type Sheet,
  STATE,
  TOKENS,
  VERIFIER,
} from '../sheet.ts'

const REFUSED_WITH_200 = { body: { error: 'invalid_grant', error_description: 'Invalid authorization code' } }

export const OAUTH2_SHEETS: Readonly<Record<string, Sheet>> = {
  idaas: {
    config: { vars: { auth_url: 'https://corp.idaas.example.com' } },
    replies: {
      'POST corp.idaas.example.com/oauth/token': { body: { ...TOKENS, scope: 'read', jti: 'j' } },
      'GET corp.idaas.example.com/api/bff/v1.2/oauth2/userinfo': {
        body: {
          success: true,
          code: '200',
          message: null,
          requestId: 'r',
          data: {
            sub: 's-1',
            username: 'lisi',
            nickname: '李四',
            phone_number: '86 138',
            ou_id: 'o',
            ou_name: '财务',
            email: '',
          },
        },
      },
      'POST corp.idaas.example.com/oauth/logout': { body: {} },
    },
    authorize: { at: 'https://corp.idaas.example.com/oauth/authorize', params: { ...ASKED, scope: 'read' } },
    redeem: [{ call: 'POST corp.idaas.example.com/oauth/token', form: { ...CODE_GRANT, ...POST } }],
    fetchUser: [{ call: 'GET corp.idaas.example.com/api/bff/v1.2/oauth2/userinfo', auth: 'Bearer at-1' }],
    refresh: [{ call: 'POST corp.idaas.example.com/oauth/token', form: { ...REFRESH_GRANT, ...POST } }],
    signOut: [
      { call: 'POST corp.idaas.example.com/oauth/logout', form: { client_id: CLIENT_ID, refresh_token: 'rt-1' } },
    ],
    tokens: HELD,
    user: { sub: 's-1', username: 'lisi', nickname: '李四', phone_number: '86 138', ou_id: 'o', ou_name: '财务' },
    errors: [
      ['redeem', BAD_CODE, 'provider_refused'],
      ['redeem', { body: { ...TOKENS, token_type: undefined } }, 'provider_answer'],
      ['refresh', { status: 401, body: { error: 'invalid_token' } }, 'provider_refused'],
      ['refresh', BAD_CLIENT, 'provider_answer'],
      ['fetchUser', { body: { error: 'invalid_token' } }, 'provider_answer'],
      ['fetchUser', { body: { success: false, code: '500', data: { sub: 's', username: 'u' } } }, 'provider_answer'],
      ['fetchUser', { body: { success: [true], data: { sub: 's', username: 'u' } } }, 'provider_answer'],
      ['fetchUser', { body: { success: true, code: '200', data: { sub: 7, username: 'u' } } }, 'provider_answer'],
    ],
  },

  // Everything by configuration: renamed parameters, an envelope, a form-encoded answer without a lifetime.
  oauth2: {
    config: {
      authorizationUrl: 'https://odd.example.com/a',
      tokenUrl: 'https://odd.example.com/t',
      userInfoUrl: 'https://odd.example.com/u',
      scope: 'x y',
      scopeSeparator: ',',
      authorizationNames: { client_id: 'appid' },
      authorizationParams: { display: 'page' },
      authorizationFragment: '#redirect',
      tokenRequest: { names: { client_id: 'appid', client_secret: 'secret' }, headers: { 'X-Extra': 'yes' } },
      tokenAnswer: { lifetimeSeconds: 600 },
      userInfoRequest: { method: 'POST', token: { query: 'token' }, params: { openid: '$openid', app: '$client_id' } },
      userInfoAnswer: { at: 'result.user', success: { status: ['ok'] } },
      fields: { sub: ['id'], username: ['account.login'] },
      require: { 'org.id': [7] },
    },
    replies: {
      'POST odd.example.com/t': { body: 'access_token=at-1&openid=o%201', type: 'application/x-www-form-urlencoded' },
      'POST odd.example.com/u': {
        body: '{"status":"ok","result":{"user":{"id":12345678901234567890,"account":{"login":"lisi"},"org":{"id":7}}}}',
      },
    },
    authorize: {
      at: 'https://odd.example.com/a',
      params: {
        response_type: 'code',
        scope: 'x,y',
        appid: CLIENT_ID,
        redirect_uri: REDIRECT_URI,
        state: STATE,
        display: 'page',
        '#': 'redirect',
      },
    },
    redeem: [
      {
        call: 'POST odd.example.com/t',
        form: { ...CODE_GRANT, appid: POST.client_id, secret: POST.client_secret },
        headers: { 'x-extra': 'yes' },
      },
    ],
    fetchUser: [{ call: 'POST odd.example.com/u', query: { token: 'at-1' }, form: { openid: 'o 1', app: CLIENT_ID } }],
    tokens: { accessToken: 'at-1', expiresIn: 600 },
    user: { sub: '12345678901234567890', username: 'lisi' },
    errors: [
      ['redeem', { body: 'error=invalid_grant', type: 'text/plain' }, 'provider_refused'],
      [
        'fetchUser',
        { body: { status: 'bad', result: { user: { id: 1, account: { login: 'x' } } } } },
        'provider_answer',
      ],
      [
        'fetchUser',
        { body: { status: 'ok', result: { user: { id: 1, account: { login: 'x' }, org: { id: 8 } } } } },
        'provider_answer',
      ],
    ],
  },

  maxkey: {
    config: { vars: { auth_url: 'https://sso.example.com' } },
    replies: {
      'POST sso.example.com/sign/authz/oauth/v20/token': { body: TOKENS },
      'GET sso.example.com/sign/api/oauth/v20/me': {
        body: {
          userId: '90',
          username: 'lisi',
          displayName: '李四',
          email: 'l@e.cn',
          mobile: '138',
          departmentId: 'd1',
          department: '财务部',
          institution: '1',
        },
      },
    },
    authorize: { at: 'https://sso.example.com/sign/authz/oauth/v20/authorize', params: ASKED },
    redeem: [{ call: 'POST sso.example.com/sign/authz/oauth/v20/token', form: { ...CODE_GRANT, ...POST } }],
    fetchUser: [{ call: 'GET sso.example.com/sign/api/oauth/v20/me', auth: 'Bearer at-1' }],
    refresh: [{ call: 'POST sso.example.com/sign/authz/oauth/v20/token', form: { ...REFRESH_GRANT, ...POST } }],
    signOutUrl: { at: 'https://sso.example.com/sign/force/logout', params: { redirect_uri: LOGIN } },
    tokens: HELD,
    user: {
      sub: '90',
      username: 'lisi',
      nickname: '李四',
      email: 'l@e.cn',
      phone_number: '138',
      ou_id: 'd1',
      ou_name: '财务部',
    },
    errors: [
      ['redeem', REFUSED_WITH_200, 'provider_refused'],
      ['redeem', { body: { error: 'invalid_client', error_description: 'Bad credentials' } }, 'provider_answer'],
      ['refresh', REFUSED_WITH_200, 'provider_refused'],
      ['fetchUser', { body: { error: 'invalid_token', error_description: 'x' } }, 'provider_answer'],
    ],
  },

  // No end of the token; the e-mail address by a call of its own; an id that is a number.
  github: {
    replies: {
      'POST github.com/login/oauth/access_token': {
        body: { access_token: 'at-1', scope: 'read:user,user:email', token_type: 'bearer' },
      },
      'GET api.github.com/user': {
        body: { id: 583_231, login: 'octocat', name: null, email: 'typed@by.user', company: '@github' },
      },
      'GET api.github.com/user/emails': {
        body: [
          { email: 'old@e.cn', primary: false, verified: true },
          { email: 'claimed@e.cn', primary: true, verified: false },
          { email: 'octocat@e.cn', primary: true, verified: true },
        ],
      },
    },
    authorize: {
      at: 'https://github.com/login/oauth/authorize',
      params: { ...ASKED, ...PKCE, scope: 'read:user user:email' },
    },
    redeem: [
      { call: 'POST github.com/login/oauth/access_token', form: { ...CODE_GRANT, ...POST, code_verifier: VERIFIER } },
    ],
    fetchUser: [
      { call: 'GET api.github.com/user', auth: 'Bearer at-1' },
      { call: 'GET api.github.com/user/emails', auth: 'Bearer at-1' },
    ],
    // Only a GitHub App has one.
    refresh: [{ call: 'POST github.com/login/oauth/access_token', form: { ...REFRESH_GRANT, ...POST } }],
    tokens: { accessToken: 'at-1', expiresIn: 28_800 },
    user: { sub: '583231', username: 'octocat', nickname: 'octocat', email: 'octocat@e.cn' },
    errors: [
      ['redeem', { body: { error: 'bad_verification_code', error_description: 'x' } }, 'provider_refused'],
      ['redeem', { body: { error: 'incorrect_client_credentials' } }, 'provider_answer'],
      ['redeem', { body: { error: 'redirect_uri_mismatch' } }, 'provider_answer'],
      ['refresh', { body: { error: 'bad_refresh_token' } }, 'provider_refused'],
      ['fetchUser', { status: 401, body: { message: 'Bad credentials' } }, 'provider_answer'],
    ],
  },

  gitee: {
    replies: {
      'POST gitee.com/oauth/token': { body: { ...TOKENS, expires_in: 86_400, scope: 'user_info', created_at: 1 } },
      'GET gitee.com/api/v5/user': { body: { id: 9_007_199, login: 'lisi', name: '李四', email: null, company: '' } },
    },
    authorize: { at: 'https://gitee.com/oauth/authorize', params: { ...ASKED, scope: 'user_info emails' } },
    redeem: [{ call: 'POST gitee.com/oauth/token', form: { ...CODE_GRANT, ...POST } }],
    fetchUser: [{ call: 'GET gitee.com/api/v5/user', query: { access_token: 'at-1' } }],
    refresh: [{ call: 'POST gitee.com/oauth/token', form: { ...REFRESH_GRANT, ...POST } }],
    tokens: { ...HELD, expiresIn: 86_400 },
    user: { sub: '9007199', username: 'lisi', nickname: '李四' },
    errors: [
      ['redeem', { ...BAD_CODE, status: 401 }, 'provider_refused'],
      ['redeem', BAD_CLIENT, 'provider_answer'],
      ['refresh', BAD_CODE, 'provider_refused'],
      [
        'fetchUser',
        { status: 401, body: { message: '401 Unauthorized: Access token does not exist' } },
        'provider_answer',
      ],
    ],
  },
}
