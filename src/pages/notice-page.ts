// Pages that only say something: not found, refused, out of order, do you really want to sign out.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import { type Html, page } from './layout.ts'

export const NOTICES = {
  trial_done: {
    status: 200,
    title: '测试登录已完成',
    text: '这是一次测试：没有登录任何人，结果已交给运行检查的终端。',
    remedy: '现在可以关闭这个页面。',
  },
  bad_request: {
    status: 400,
    title: '请求无法理解',
    text: '这个地址或请求的写法不对。',
    remedy: '请检查地址，或者返回首页。',
  },
  refused: {
    status: 403,
    title: '没有访问权限',
    text: '您已登录，但您的角色不能访问这个页面。',
    remedy: '如果需要权限，请联系管理员。',
  },
  foreign: {
    status: 403,
    title: '请求被拒绝',
    text: '这个请求来自另一个网站，为了保护您的账号没有执行。',
    remedy: '请从登录页重新操作。',
  },
  not_found: {
    status: 404,
    title: '页面不存在',
    text: '没有找到您要访问的页面。',
    remedy: '请检查地址，或者返回首页。',
  },
  method_not_allowed: {
    status: 405,
    title: '不支持的操作',
    text: '这个地址不支持这种请求方式。',
    remedy: '请返回首页重新操作。',
  },
  too_large: { status: 413, title: '内容过大', text: '提交的内容超出了限制。', remedy: '请返回后重试。' },
  too_many: { status: 429, title: '操作过于频繁', text: '来自您网络的登录请求太多了。', remedy: '请等一分钟再试。' },
  broken: {
    status: 500,
    title: '出了点问题',
    text: '服务器内部出现错误，我们已经记录下来。',
    remedy: '请稍后重试；如果一直这样，请联系管理员。',
  },
  bad_gateway: {
    status: 502,
    title: '应用暂时无法访问',
    text: '后面的应用没有响应。',
    remedy: '请稍后刷新页面；如果一直这样，请联系管理员。',
  },
  busy: {
    status: 503,
    title: '应用正忙',
    text: '现在的请求太多，应用暂时来不及处理。',
    remedy: '请稍等几秒再刷新页面；如果一直这样，请联系管理员。',
  },
  gateway_timeout: {
    status: 504,
    title: '应用响应超时',
    text: '后面的应用没有及时响应。',
    remedy: '请稍后刷新页面；如果一直这样，请联系管理员。',
  },
  unavailable: {
    status: 503,
    title: '服务暂时不可用',
    text: '暂时无法确认您的登录状态，您并没有被退出登录。',
    remedy: '请稍后刷新页面。',
  },
} as const

export type NoticeName = keyof typeof NOTICES

interface Circumstances {
  /** Where there is something to try again, a path of our own leads there. */
  readonly retryPath?: string | undefined
  /** Said to somebody who is signed in, and need not wonder whether that is why. */
  readonly isUser?: boolean | undefined
  /** What the user can read out to whoever looks into it. */
  readonly requestId?: string
}

export function noticeText(name: NoticeName, isUser = false): string {
  return isUser ? `您已登录，但${NOTICES[name].text}` : NOTICES[name].text
}

export function noticePage(
  appName: string,
  name: NoticeName,
  { retryPath, isUser, requestId }: Circumstances = {},
): string {
  return noticeFrame(
    appName,
    name,
    html`<p class="hint">${NOTICES[name].remedy}</p>
${retryPath === undefined ? '' : html`<a class="button" href="${retryPath}">再试一次</a>`}
<a class="button quiet" href="/">返回首页</a>
${requestId === undefined ? '' : reference(requestId)}`,
    noticeText(name, isUser),
  )
}

/** By which the console and the log find everything about a request. */
export function reference(requestId: string): Html {
  return html`<p class="small">编号：<code>${requestId}</code></p>`
}

/** The title and the text of a notice, with something else below. */
export function noticeFrame(appName: string, name: NoticeName, rest: Html, text = noticeText(name)): string {
  const { title } = NOTICES[name]
  return page({
    appName,
    title,
    body: html`
<h1>${title}</h1>
<p class="lead">${text}</p>
${rest}`,
  })
}

export function confirmSignOutPage(appName: string): string {
  return page({
    appName,
    title: '退出登录',
    body: html`
<h1>要退出登录吗？</h1>
<p class="lead">这个请求可能不是您自己发起的。为了避免误操作，请您确认。</p>
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">退出登录</button></form>
<a class="button quiet" href="/">不，返回首页</a>`,
  })
}
