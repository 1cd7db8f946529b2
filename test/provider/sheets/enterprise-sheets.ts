// Identity platforms of organisations that speak OAuth 2.0 in their own way, one sheet each.
import {
  ASKED,
  BAD_CLIENT,
  BAD_CODE,
  BASIC,
  CLIENT_ID,
  CODE,
  CODE_GRANT,
  HELD,
  LOGIN,
  PLAIN_STATE,
  POST,
  REFRESH_GRANT,
  type Sheet,
  STATE,
  TOKENS,
} from '../sheet.ts'

export const ENTERPRISE_SHEETS: Readonly<Record<string, Sheet>> = {
  // Letters and digits alone in the state; the lifetime may be text.
  oneaccess: {
    config: { vars: { auth_url: 'https://corp.huaweioneaccess.com' } },
    state: 'plain',
    replies: {
      'POST corp.huaweioneaccess.com/api/v1/oauth2/token': { body: { ...TOKENS, expires_in: '7200' } },
      'GET corp.huaweioneaccess.com/api/v1/oauth2/userinfo': {
        body: {
          id: 'i-1',
          userName: 'lisi',
          name: '李四',
          email: 'l@e.cn',
          mobile: '138',
          role: 'user',
          organizationName: '财务',
          organizationCode: 'c1',
        },
      },
    },
    authorize: {
      at: 'https://corp.huaweioneaccess.com/api/v1/oauth2/authorize',
      params: { ...ASKED, state: PLAIN_STATE, scope: 'get_user_info' },
    },
    redeem: [{ call: 'POST corp.huaweioneaccess.com/api/v1/oauth2/token', form: { ...CODE_GRANT, ...POST } }],
    fetchUser: [{ call: 'GET corp.huaweioneaccess.com/api/v1/oauth2/userinfo', auth: 'Bearer at-1' }],
    refresh: [{ call: 'POST corp.huaweioneaccess.com/api/v1/oauth2/token', form: { ...REFRESH_GRANT, ...POST } }],
    signOutUrl: { at: 'https://corp.huaweioneaccess.com/api/v1/logout', params: { redirect_url: LOGIN } },
    tokens: HELD,
    user: {
      sub: 'i-1',
      username: 'lisi',
      nickname: '李四',
      email: 'l@e.cn',
      phone_number: '138',
      ou_id: 'c1',
      ou_name: '财务',
    },
    groups: ['user'],
    errors: [
      ['redeem', { ...BAD_CODE, status: 401 }, 'provider_refused'],
      ['redeem', BAD_CLIENT, 'provider_answer'],
      ['fetchUser', { status: 401, body: { error: 'invalid_token', error_description: 'x' } }, 'provider_answer'],
    ],
  },

  bamboocloud: {
    config: { vars: { auth_url: 'https://bam.example.edu.cn' } },
    replies: {
      'POST bam.example.edu.cn/idp/oauth2/getToken': { body: { ...TOKENS, token_type: undefined, uid: 'u-7' } },
      'POST bam.example.edu.cn/idp/oauth2/refreshToken': { body: { ...TOKENS, token_type: undefined, uid: 'u-7' } },
      'GET bam.example.edu.cn/idp/oauth2/getUserInfo': {
        body: {
          loginName: 'lisi',
          displayName: '李四',
          mail: 'l@e.cn',
          orgNamePath: '/学校/财务',
          spRoleList: ['lisi', 'admin'],
        },
      },
    },
    authorize: { at: 'https://bam.example.edu.cn/idp/oauth2/authorize', params: ASKED },
    redeem: [
      {
        call: 'POST bam.example.edu.cn/idp/oauth2/getToken',
        query: { ...POST, grant_type: 'authorization_code', code: CODE },
      },
    ],
    fetchUser: [
      {
        call: 'GET bam.example.edu.cn/idp/oauth2/getUserInfo',
        query: { access_token: 'at-1', client_id: CLIENT_ID },
      },
    ],
    refresh: [{ call: 'POST bam.example.edu.cn/idp/oauth2/refreshToken', query: { ...REFRESH_GRANT, ...POST } }],
    signOutUrl: {
      at: 'https://bam.example.edu.cn/idp/profile/OAUTH2/Redirect/GLO',
      params: { redirctToUrl: LOGIN, redirectToLogin: 'true', entityId: CLIENT_ID },
    },
    tokens: HELD,
    user: { sub: 'u-7', username: 'lisi', nickname: '李四', email: 'l@e.cn', ou_name: '/学校/财务' },
    errors: [
      ['redeem', { body: { errcode: '1001', msg: 'code 无效' } }, 'provider_answer'],
      ['redeem', { body: { errcode: 1001, msg: 'x', access_token: 'at', expires_in: 60 } }, 'provider_answer'],
      ['fetchUser', { body: { errcode: '2001', msg: 'x' } }, 'provider_answer'],
    ],
  },

  // Fields beside code, msg and data; user info knows no id.
  'sa-token': {
    config: { vars: { auth_url: 'https://sa.example.com' }, revoke: 'always' },
    replies: {
      'POST sa.example.com/oauth2/token': {
        body: { code: 200, msg: 'ok', data: null, ...TOKENS, refresh_expires_in: 9, openid: 'gr_1', userid: '10001' },
      },
      // A server can leave the envelope out.
      'POST sa.example.com/oauth2/refresh': { body: { ...TOKENS, openid: 'gr_1' } },
      'GET sa.example.com/oauth2/userinfo': {
        body: { code: 200, msg: 'ok', data: null, nickname: '李四', avatar: '' },
      },
      'POST sa.example.com/oauth2/revoke': { body: { code: 200, msg: 'ok', data: null } },
    },
    authorize: { at: 'https://sa.example.com/oauth2/authorize', params: { ...ASKED, scope: 'openid,userid,userinfo' } },
    redeem: [{ call: 'POST sa.example.com/oauth2/token', form: { ...CODE_GRANT, ...POST } }],
    fetchUser: [{ call: 'GET sa.example.com/oauth2/userinfo', auth: 'Bearer at-1' }],
    refresh: [{ call: 'POST sa.example.com/oauth2/refresh', form: { ...REFRESH_GRANT, ...POST } }],
    signOut: [{ call: 'POST sa.example.com/oauth2/revoke', form: { access_token: 'at-1', ...POST } }],
    tokens: HELD,
    user: { sub: 'gr_1', username: '10001', nickname: '李四' },
    errors: [
      ['redeem', { body: { code: 500, msg: '无效code: the-code', data: null } }, 'provider_answer'],
      ['redeem', { body: { code: 500, msg: 'x', data: null, ...TOKENS } }, 'provider_answer'],
      ['refresh', { body: { code: 500, msg: '无效refresh_token', data: null } }, 'provider_answer'],
      ['fetchUser', { body: { code: 500, msg: '无效access_token', data: null } }, 'provider_answer'],
    ],
  },

  // The state once more at the token call, the tenant at every one, envelopes with code 0.
  ruoyi: {
    config: { vars: { auth_url: 'https://admin.example.com', tenant: '121' } },
    replies: {
      'POST admin.example.com/admin-api/system/oauth2/token': {
        body: { code: 0, msg: '', data: { ...TOKENS, scope: 'user.read' } },
      },
      'GET admin.example.com/admin-api/system/oauth2/user/get': {
        body: {
          code: 0,
          msg: '',
          data: {
            id: 100,
            username: 'lisi',
            nickname: '李四',
            email: 'l@e.cn',
            mobile: '138',
            dept: { id: 108, name: '市场部' },
            posts: [
              { id: 1, name: '项目经理' },
              { id: 2, name: '会计' },
            ],
          },
        },
      },
      'DELETE admin.example.com/admin-api/system/oauth2/token': { body: { code: 0, msg: '', data: true } },
    },
    authorize: { at: 'https://admin.example.com/sso', params: { ...ASKED, scope: 'user.read' } },
    redeem: [
      {
        call: 'POST admin.example.com/admin-api/system/oauth2/token',
        auth: BASIC,
        form: { ...CODE_GRANT, state: STATE },
        headers: { 'tenant-id': '121' },
      },
    ],
    fetchUser: [
      {
        call: 'GET admin.example.com/admin-api/system/oauth2/user/get',
        auth: 'Bearer at-1',
        headers: { 'tenant-id': '121' },
      },
    ],
    refresh: [
      {
        call: 'POST admin.example.com/admin-api/system/oauth2/token',
        auth: BASIC,
        form: REFRESH_GRANT,
        headers: { 'tenant-id': '121' },
      },
    ],
    signOut: [
      {
        call: 'DELETE admin.example.com/admin-api/system/oauth2/token',
        auth: BASIC,
        query: { token: 'at-1' },
        headers: { 'tenant-id': '121' },
      },
    ],
    tokens: HELD,
    user: {
      sub: '100',
      username: 'lisi',
      nickname: '李四',
      email: 'l@e.cn',
      phone_number: '138',
      ou_id: '108',
      ou_name: '市场部',
    },
    groups: ['项目经理', '会计'],
    errors: [
      ['redeem', { body: { code: 1_002_022_000, msg: 'code 不存在', data: null } }, 'provider_answer'],
      ['refresh', { body: { code: 400, msg: '无效的刷新令牌', data: null } }, 'provider_refused'],
      ['refresh', { body: { code: 401, msg: '刷新令牌已过期', data: null } }, 'provider_refused'],
      ['fetchUser', { body: { code: 401, msg: '账号未登录', data: null } }, 'provider_answer'],
    ],
  },
}
