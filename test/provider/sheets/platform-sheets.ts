// The big Chinese platforms, one sheet each.
import {
  ASKED,
  CLIENT_ID,
  CLIENT_SECRET,
  CODE,
  CODE_GRANT,
  PKCE,
  PLAIN_STATE,
  POST,
  REDIRECT_URI,
  REFRESH_GRANT,
  type Reply,
  type Sheet,
  VERIFIER,
} from '../sheet.ts'

const FEISHU_TOKENS = {
  code: 0,
  access_token: 'at-1',
  expires_in: 7200,
  refresh_token: 'rt-1',
  refresh_token_expires_in: 604_800,
  scope: 'offline_access',
  token_type: 'Bearer',
}
const FEISHU_USER = {
  code: 0,
  msg: 'success',
  data: {
    union_id: 'on_1',
    open_id: 'ou_1',
    user_id: 'lisi',
    name: '李四',
    en_name: 'Li Si',
    email: 'private@e.cn',
    enterprise_email: 'lisi@corp.cn',
    mobile: '+86138',
    tenant_key: 't-1',
  },
}
const FEISHU_ERRORS: Sheet['errors'] = [
  [
    'redeem',
    { status: 400, body: { code: 20003, error: 'invalid_grant', error_description: 'x' } },
    'provider_refused',
  ],
  ['redeem', { status: 400, body: { code: 20065, error: 'invalid_request' } }, 'provider_refused'],
  ['redeem', { status: 400, body: { code: 20002, error: 'invalid_client' } }, 'provider_answer'],
  ['redeem', { body: { code: 20050, access_token: 'at', expires_in: 60 } }, 'provider_answer'],
  ['refresh', { status: 400, body: { code: 20064, error: 'invalid_grant' } }, 'provider_refused'],
  ['refresh', { status: 503, body: { code: 20072, error: 'temporarily_unavailable' } }, 'provider_answer'],
  ['fetchUser', { body: { code: 99991663, msg: 'token expired', data: {} } }, 'provider_answer'],
]

function feishuSheet(host: string, token: string, as: 'form' | 'json'): Sheet {
  const call = `POST ${token}`
  return {
    config: { scope: 'offline_access' },
    replies: {
      [call]: { body: FEISHU_TOKENS },
      [`GET open.${host}/open-apis/authen/v1/user_info`]: { body: FEISHU_USER },
    },
    authorize: {
      at: `https://accounts.${host}/open-apis/authen/v1/authorize`,
      params: { ...ASKED, ...PKCE, scope: 'offline_access' },
    },
    redeem: [{ call, [as]: { ...CODE_GRANT, ...POST, code_verifier: VERIFIER } }],
    fetchUser: [{ call: `GET open.${host}/open-apis/authen/v1/user_info`, auth: 'Bearer at-1' }],
    refresh: [{ call, [as]: { ...REFRESH_GRANT, ...POST } }],
    tokens: { accessToken: 'at-1', refreshToken: 'rt-1', expiresIn: 7200 },
    user: {
      sub: 'on_1',
      username: 'lisi',
      nickname: '李四',
      email: 'lisi@corp.cn',
      phone_number: '+86138',
      ou_id: 't-1',
    },
    errors: FEISHU_ERRORS,
  }
}

const wecomError = (errcode: number, errmsg: string): Reply => ({ body: { errcode, errmsg } })

export const PLATFORM_SHEETS: Readonly<Record<string, Sheet>> = {
  feishu: feishuSheet('feishu.cn', 'accounts.feishu.cn/oauth/v3/token', 'form'),
  lark: feishuSheet('larksuite.com', 'open.larksuite.com/open-apis/authen/v2/oauth/token', 'json'),

  dingtalk: {
    codeNames: ['authCode', 'code'],
    replies: {
      'POST api.dingtalk.com/v1.0/oauth2/userAccessToken': {
        body: { accessToken: 'at-1', refreshToken: 'rt-1', expireIn: 7200, corpId: 'ding1' },
      },
      'GET api.dingtalk.com/v1.0/contact/users/me': {
        body: {
          unionId: 'z21',
          openId: 'o1',
          nick: 'admin',
          avatarUrl: 'https://x',
          mobile: '138',
          stateCode: '86',
          email: 'l@e.cn',
        },
      },
    },
    authorize: {
      at: 'https://login.dingtalk.com/oauth2/auth',
      params: { ...ASKED, scope: 'openid', prompt: 'consent' },
    },
    redeem: [
      {
        call: 'POST api.dingtalk.com/v1.0/oauth2/userAccessToken',
        json: { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, code: CODE, grantType: 'authorization_code' },
      },
    ],
    fetchUser: [
      { call: 'GET api.dingtalk.com/v1.0/contact/users/me', headers: { 'x-acs-dingtalk-access-token': 'at-1' } },
    ],
    refresh: [
      {
        call: 'POST api.dingtalk.com/v1.0/oauth2/userAccessToken',
        json: { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, refreshToken: 'rt-1', grantType: 'refresh_token' },
      },
    ],
    tokens: { accessToken: 'at-1', refreshToken: 'rt-1', expiresIn: 7200 },
    // What a user calls himself makes nobody an admin.
    user: { sub: 'z21', username: 'z21', nickname: 'admin', email: 'l@e.cn', phone_number: '86-138', ou_id: 'ding1' },
    errors: [
      [
        'redeem',
        { status: 400, body: { code: 'invalidParameter.authCode', message: '不合法的临时授权码' } },
        'provider_answer',
      ],
      ['refresh', { status: 400, body: { code: 'invalidParameter', message: 'x' } }, 'provider_answer'],
      ['fetchUser', { status: 401, body: { code: 'InvalidAuthentication', message: 'x' } }, 'provider_answer'],
    ],
  },

  wecom: {
    config: { vars: { agent: '1000002' } },
    state: 'plain',
    replies: {
      'GET qyapi.weixin.qq.com/cgi-bin/gettoken': {
        body: { errcode: 0, errmsg: 'ok', access_token: 'company', expires_in: 7200 },
      },
      'GET qyapi.weixin.qq.com/cgi-bin/auth/getuserinfo': {
        body: { errcode: 0, errmsg: 'ok', userid: 'lisi', user_ticket: 't' },
      },
      'GET qyapi.weixin.qq.com/cgi-bin/user/get': {
        body: {
          errcode: 0,
          errmsg: 'ok',
          userid: 'lisi',
          name: '李四',
          biz_mail: 'lisi@corp.cn',
          mobile: '138',
          department: [2, 5],
          main_department: 2,
        },
      },
    },
    authorize: {
      at: 'https://login.work.weixin.qq.com/wwlogin/sso/login',
      params: {
        login_type: 'CorpApp',
        appid: CLIENT_ID,
        agentid: '1000002',
        redirect_uri: REDIRECT_URI,
        state: PLAIN_STATE,
      },
    },
    redeem: [],
    fetchUser: [
      { call: 'GET qyapi.weixin.qq.com/cgi-bin/gettoken', query: { corpid: CLIENT_ID, corpsecret: CLIENT_SECRET } },
      { call: 'GET qyapi.weixin.qq.com/cgi-bin/auth/getuserinfo', query: { access_token: 'company', code: CODE } },
      { call: 'GET qyapi.weixin.qq.com/cgi-bin/user/get', query: { access_token: 'company', userid: 'lisi' } },
    ],
    tokens: { accessToken: '', expiresIn: 7200 },
    user: { sub: 'lisi', username: 'lisi', nickname: '李四', email: 'lisi@corp.cn', phone_number: '138', ou_id: '2' },
    groups: ['2', '5'],
    errors: [
      ['fetchUser', wecomError(40029, 'invalid code'), 'provider_refused'],
      ['fetchUser', wecomError(42003, 'code expired'), 'provider_refused'],
      ['fetchUser', wecomError(60020, 'not allow to access from your ip'), 'provider_answer'],
      // Somebody who is not a member.
      ['fetchUser', { body: { errcode: 0, errmsg: 'ok', openid: 'o', external_userid: 'w' } }, 'provider_answer'],
    ],
  },
}
