// WeCom (企业微信), the page with a QR code. From the clients of JustAuth, Casdoor and Logto; not tried live.
// A flow of its own: the company's token asks who brought the code. The state may have letters and digits only; status is
// always 200. CLIENT_ID is the corpid and CLIENT_SECRET the secret of the application.
import type { Preset } from '../preset.ts'

export const wecom: Preset = {
  kind: 'company_token',
  name: '企业微信',
  variables: {
    auth_url: { sentence: 'Where users sign in.', default: 'https://login.work.weixin.qq.com' },
    api_url: { sentence: 'Its API.', default: 'https://qyapi.weixin.qq.com' },
    agent: { sentence: 'The AgentId of the application.' },
  },
  authorizationUrl: '{auth_url}/wwlogin/sso/login',
  tokenUrl: '{api_url}/cgi-bin/gettoken',
  userInfoUrl: '{api_url}/cgi-bin/auth/getuserinfo',
  authorizationNames: { client_id: 'appid', response_type: '', scope: '' },
  authorizationParams: { login_type: 'CorpApp', agentid: '{agent}' },
  state: 'plain',
  tokenAnswer: { success: { errcode: [0] }, lifetimeSeconds: 7200 },
  refreshUrl: false,
  // The code is not valid, spent, or late.
  refreshEnds: ['40029', '40163', '42003'],
  userInfoAnswer: { success: { errcode: [0] } },
  userInfoFrom: ['userinfo'],
  fields: {
    sub: ['userid'],
    username: ['userid'],
    nickname: ['name', 'alias'],
    email: ['biz_mail', 'email'],
    phone_number: ['mobile'],
    ou_id: ['main_department'],
    groups: ['department'],
  },
  logout: { style: 'none' },
}
