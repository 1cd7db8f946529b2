// Shown in place of a second trip to the login page, when the browser did not keep the cookie of the first.
import { html } from 'hono/html'
import { page } from './layout.ts'
import { reference } from './notice-page.ts'

interface LostCookieView {
  readonly appName: string
  /** The address under which signing in works. */
  readonly baseUrl: string
  /** The host that the browser asked for, if it is another one. */
  readonly otherHost: string | undefined
  readonly requestId: string
}

export function lostCookiePage({ appName, baseUrl, otherHost, requestId }: LostCookieView): string {
  const secure = baseUrl.startsWith('https:')
  return page({
    appName,
    title: '无法保持登录',
    body: html`
<h1>登录成功，但浏览器没有保存登录状态</h1>
<p class="lead">再登录一次也会回到这里。最可能的原因：</p>
<div class="notice bad"><ul>
${otherHost ? html`<li>您访问的是 <code>${otherHost}</code>，而登录只在 <code>${baseUrl}</code> 有效。</li>` : ''}
${secure ? html`<li>登录状态只能通过 https 保存，而这个页面是用 http 打开的。</li>` : ''}
<li>浏览器禁用了 Cookie，或者插件、隐私模式阻止了它。</li>
</ul></div>
<p class="hint">请允许此网站使用 Cookie，并从下面的地址重新进入。管理员请检查设置 <code>BASE_URL</code>。</p>
<a class="button" href="${baseUrl}/">${baseUrl}</a>
${reference(requestId)}`,
  })
}
