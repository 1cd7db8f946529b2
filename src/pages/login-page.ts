// The login page: one button for each provider, what went wrong last time, and what is missing in the configuration.

import { html } from 'hono/html'
import { LOGIN_ERRORS, loginError } from '../errors.ts'
import { OWN_PATHS } from '../own-paths.ts'
import { page } from './layout.ts'
import { reference } from './notice-page.ts'

/** One provider that users can sign in through. */
export interface WayIn {
  readonly id: string
  readonly name: string | undefined
  /** Whether the server has to know of an attempt before the browser leaves. */
  readonly remembered: boolean
  /** The authorization address without its state; empty where the server gives it. */
  readonly authorizationUrl: string
}

interface LoginView {
  readonly appName: string
  /** The settings without which nobody can sign in. */
  readonly missing: readonly string[]
  readonly ways: readonly WayIn[]
  readonly error: string | undefined
  /** Of the request that failed, if one did. */
  readonly requestId: string
  readonly signedIn: { readonly name: string; readonly continueTo: string } | undefined
  /** A sign-out has just happened. */
  readonly signedOut: 'here' | 'everywhere' | undefined
}

const USUAL_NAME = '统一身份认证'
const USE_ACCOUNT = '请使用单位的统一身份账号登录'
const CHOOSE = '请选择登录方式'
const LONGEST_CODE_SHOWN = 80

export function loginPage(view: LoginView): string {
  const { appName, missing, ways, error, signedIn, signedOut } = view
  const unusable = missing.length > 0
  return page({
    appName,
    title: '登录',
    script: 'login.js',
    body: html`
<h1>${appName}</h1>
${error === undefined ? '' : errorNotice(error)}
${signedOut && !signedIn ? signedOutNotice(signedOut) : ''}
${unusable ? missingNotice(missing) : ''}
${signedIn ? signedInNotice(signedIn) : html`<p class="lead">${ways.length > 1 ? CHOOSE : USE_ACCOUNT}</p>`}
${ways.map((way, n) => signInForm(way, { isMain: n === 0, isOnly: ways.length === 1, quiet: n > 0 || signedIn !== undefined, unusable }))}
<p class="hint">账号和密码只在身份认证平台的页面上输入。</p>
${error === undefined ? '' : reference(view.requestId)}`,
  })
}

function signInForm(
  way: WayIn,
  { isMain, isOnly, quiet, unusable }: Record<'isMain' | 'isOnly' | 'quiet' | 'unusable', boolean>,
) {
  const { id, name = USUAL_NAME, authorizationUrl, remembered } = way
  return html`<form id="${isMain ? 'sign-in' : `sign-in-${id}`}" class="sign-in" method="post" action="${OWN_PATHS.login}" data-authorize="${authorizationUrl}" data-remembered="${remembered ? 'true' : 'false'}">
${isOnly ? '' : html`<input type="hidden" name="provider" value="${id}">`}<button type="submit" class="${quiet ? 'button quiet' : 'button'}" ${unusable ? 'disabled' : ''}>${name}登录</button>
</form>`
}

function errorNotice(code: string) {
  const { message, remedy } = loginError(code)
  return html`<div class="notice bad" role="alert">
<p><strong>${message}</strong></p>
<p>${remedy}</p>
${Object.hasOwn(LOGIN_ERRORS, code) ? '' : html`<p class="small">错误代码：<code>${shorten(code)}</code></p>`}
</div>`
}

function missingNotice(missing: readonly string[]) {
  return html`<div class="notice bad" role="alert">
<p><strong>登录尚未配置完成，暂时无法登录。</strong></p>
<p>请管理员补上以下设置，然后重新启动：</p>
<ul>${missing.map(name => html`<li><code>${name}</code></li>`)}</ul>
</div>`
}

function signedInNotice({ name, continueTo }: { name: string; continueTo: string }) {
  return html`<div class="notice good" role="status"><p>您已登录：<strong>${name}</strong></p></div>
<a class="button" href="${continueTo}">继续访问</a>
<p class="hint">要换一个账号，可以重新登录：</p>`
}

const SIGNED_OUT = { here: '您已安全退出登录。', everywhere: '您已在所有设备上退出登录。' } as const

function signedOutNotice(where: keyof typeof SIGNED_OUT) {
  return html`<div class="notice good" role="status"><p><strong>${SIGNED_OUT[where]}</strong></p><p>欢迎下次再来。</p></div>`
}

function shorten(code: string): string {
  const characters = [...code]
  return characters.length > LONGEST_CODE_SHOWN ? `${characters.slice(0, LONGEST_CODE_SHOWN).join('')}…` : code
}
