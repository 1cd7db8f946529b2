// The texts of the provider's pages in Chinese and English, and which of the two a browser gets.

import type { Context } from 'hono'
import { readFormFields, senderOf } from './client.ts'

import type { Note } from './users.ts'

export type Lang = 'zh-CN' | 'en'

/** Cookies ignore ports: the language chosen on the login page of an application on this machine applies here too. */
const COOKIE = 'menshen_language'
const YEAR_SECONDS = 365 * 86_400

type Knobs = Readonly<
  Record<
    'accessTokenSeconds' | 'delayMs' | 'refuseRefreshes' | 'failTokenCalls' | 'failUserInfoCalls' | 'denyUserInfoCalls',
    { readonly label: string; readonly hint: string }
  >
>

export interface DevWords {
  readonly lang: Lang
  readonly other: { readonly lang: Lang; readonly label: string }
  readonly language: string
  readonly provider: string
  readonly warning: string
  readonly chooseTitle: string
  readonly chooseHeading: string
  /** The texts before and after the application's name. */
  readonly chooseLead: readonly [string, string]
  readonly deny: string
  readonly panelHint: string
  readonly panel: string
  readonly groups: string
  readonly notes: Readonly<Record<Note, string>>
  readonly panelLead: string
  readonly allWell: string
  readonly backToUsual: string
  readonly set: string
  readonly off: string
  readonly always: string
  readonly units: Readonly<Record<'seconds' | 'milliseconds' | 'times', string>>
  readonly knobs: Knobs
  readonly sessions: string
  readonly nobody: string
  readonly user: string
  readonly signedInAt: string
  readonly refreshes: string
  readonly colon: string
  readonly notFound: readonly [string, string]
  readonly badRequest: string
  readonly badClientId: string
  readonly badRedirectUri: string
  readonly foreign: readonly [string, string]
  readonly noSuchUser: readonly [string, string]
  readonly signedOut: readonly [string, string]
  readonly panelOnly: readonly [string, string]
  readonly badValue: readonly [string, string]
}

const WORDS: Readonly<Record<Lang, DevWords>> = {
  'zh-CN': {
    lang: 'zh-CN',
    other: { lang: 'en', label: 'English' },
    language: '语言',
    provider: '开发用身份认证平台',
    warning: '无需密码，切勿用于生产环境',
    chooseTitle: '选择身份',
    chooseHeading: '以谁的身份登录？',
    chooseLead: ['应用', '请求读取您的用户信息。选择一个用户即可登录。'],
    deny: '拒绝',
    panelHint: '想测试令牌过期、接口故障？请打开',
    panel: '控制面板',
    groups: '用户组',
    notes: { developer: 'developer', common: 'common', incomplete: '资料不全' },
    panelLead: '让身份认证平台出错、变慢，或让令牌提前过期，观察您的应用如何应对。',
    allWell: '一切正常',
    backToUsual: '恢复正常',
    set: '设置',
    off: '关',
    always: '一直',
    units: { seconds: '秒', milliseconds: '毫秒', times: '次' },
    knobs: {
      accessTokenSeconds: {
        label: '访问令牌有效期',
        hint: '对之后签发的令牌生效。310 秒的令牌很快就需要续期。',
      },
      delayMs: { label: '响应延迟', hint: '令牌、用户信息和退出登录接口会立即处理请求，但延迟响应。' },
      refuseRefreshes: { label: '拒绝续期', hint: '接下来的续期请求返回 invalid_grant。' },
      failTokenCalls: { label: '令牌接口故障', hint: '接下来的令牌请求返回 HTTP 500。' },
      failUserInfoCalls: { label: '用户信息接口故障', hint: '接下来的用户信息请求返回 HTTP 500。' },
      denyUserInfoCalls: {
        label: '用户信息返回失败',
        hint: '接下来的用户信息请求返回 HTTP 200，但 success 为 false。',
      },
    },
    sessions: '会话',
    nobody: '当前没有会话。',
    user: '用户',
    signedInAt: '登录时间',
    refreshes: '续期',
    colon: '：',
    notFound: ['页面不存在', '请检查地址。'],
    badRequest: '无法处理该登录请求',
    badClientId: 'client_id 与登记的应用不符。',
    badRedirectUri: 'redirect_uri 与登记的回调地址不完全一致。',
    foreign: ['已拒绝', '请求来自其他网站。'],
    noSuchUser: ['无法登录', '该用户不存在，请返回重新选择。'],
    signedOut: ['已退出登录', '您已退出登录，可以关闭此页面。'],
    panelOnly: ['已拒绝', '只能从控制面板修改。'],
    badValue: ['未修改', '填写的值不在允许的范围内。'],
  },
  en: {
    lang: 'en',
    other: { lang: 'zh-CN', label: '简体中文' },
    language: 'Language',
    provider: 'Development provider',
    warning: 'No passwords. Never use it in production.',
    chooseTitle: 'Choose a user',
    chooseHeading: 'Choose a user',
    chooseLead: ['The application', 'requests your user information. Choose a user to sign in.'],
    deny: 'Deny',
    panelHint: 'Expired tokens, failing calls? Try them in the',
    panel: 'Control panel',
    groups: 'Groups',
    notes: { developer: 'developer', common: 'common', incomplete: 'incomplete' },
    panelLead: 'Make the provider fail, slow down or expire tokens early, and see how your application handles it.',
    allWell: 'Everything normal',
    backToUsual: 'Back to normal',
    set: 'Set',
    off: 'off',
    always: 'always',
    units: { seconds: 's', milliseconds: 'ms', times: '×' },
    knobs: {
      accessTokenSeconds: {
        label: 'Access token lifetime',
        hint: 'Applies to tokens issued from now on. A 310-second token is soon due for a refresh.',
      },
      delayMs: {
        label: 'Delay',
        hint: 'Token, user info and server sign-out calls are processed immediately and answered late.',
      },
      refuseRefreshes: { label: 'Refuse refreshes', hint: 'The next refreshes get invalid_grant.' },
      failTokenCalls: { label: 'Failing token calls', hint: 'The next token calls get HTTP 500.' },
      failUserInfoCalls: { label: 'Failing user info calls', hint: 'The next user info calls get HTTP 500.' },
      denyUserInfoCalls: {
        label: 'User info without success',
        hint: 'The next user info calls get HTTP 200 with success: false.',
      },
    },
    sessions: 'Sessions',
    nobody: 'No active sessions.',
    user: 'User',
    signedInAt: 'Signed in',
    refreshes: 'Refreshes',
    colon: ': ',
    notFound: ['Page not found', 'Check the address.'],
    badRequest: 'Invalid sign-in request',
    badClientId: 'client_id does not match the registered application.',
    badRedirectUri: 'redirect_uri does not match the registered one exactly.',
    foreign: ['Refused', 'The request came from another website.'],
    noSuchUser: ['Cannot sign in', 'There is no such user. Go back and choose again.'],
    signedOut: ['Signed out', 'You’ve signed out. You can close this page.'],
    panelOnly: ['Refused', 'Only the control panel can change this.'],
    badValue: ['Nothing changed', 'The value is out of range.'],
  },
}

export type WordsOf = (c: Context) => DevWords

/** `language` is that of the application's pages; `auto` is the browser's. */
export function createDevWords(language: string): WordsOf {
  return c => {
    const [, chosen = ''] = new RegExp(`(?:^|;\\s*)${COOKIE}=([\\w-]*)`).exec(c.req.header('cookie') ?? '') ?? []
    if (isLang(chosen)) return WORDS[chosen]
    if (language === 'auto') return WORDS[preferredLanguage(c.req.header('accept-language') ?? '')]
    return WORDS[isLang(language) ? language : 'zh-CN']
  }
}

/** POST /language: only our own pages may set the language. */
export async function languageRoute(c: Context): Promise<Response> {
  const form = senderOf(c.req.raw) === 'own page' ? await readFormFields(c.req.raw) : undefined
  const chosen = form?.get('language') ?? ''
  if (!isLang(chosen)) return c.text('not a language of this page', 400)
  c.header('Set-Cookie', `${COOKIE}=${chosen}; Path=/; Max-Age=${YEAR_SECONDS}; HttpOnly; SameSite=Lax`)
  return c.redirect(pageBefore(c), 303)
}

/** The page that the form was on: that for choosing a user, or the panel. */
function pageBefore(c: Context): string {
  const before = URL.parse(c.req.header('referer') ?? '')
  const isOurs = before?.host === c.req.header('host')
  return isOurs && before?.pathname === '/oauth/authorize' ? before.pathname + before.search : '/'
}

function isLang(text: string): text is Lang {
  return Object.hasOwn(WORDS, text)
}

/** Whichever of the two languages comes first in Accept-Language. */
function preferredLanguage(acceptLanguage: string): Lang {
  const [first] = /\b(zh|en)\b/i.exec(acceptLanguage) ?? []
  return first?.toLowerCase() === 'en' ? 'en' : 'zh-CN'
}
