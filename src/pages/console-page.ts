// The console: who is signed in, ending a session, and the settings in effect.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { Listed } from '../session/session-listing.ts'
import { roleName } from './account-page.ts'
import { page } from './layout.ts'
import { moment } from './moment.ts'

interface ConsoleView {
  readonly appName: string
  readonly sessions: readonly Listed[]
  /** The session that looks at the page. */
  readonly ownKey: string
  /** What each of several providers is called, by its id; absent where there is one. */
  readonly providerNames: ReadonlyMap<string, string> | undefined
  readonly username: string
  readonly next: string | undefined
  /** What a developer should know about how it runs. */
  readonly warnings: readonly string[]
  /** Name and shown value; secrets are hidden already. */
  readonly settings: readonly (readonly [string, string])[]
}

export function consolePage(view: ConsoleView): string {
  return page({
    appName: view.appName,
    title: '控制台',
    script: 'moments.js',
    style: 'console.css',
    wide: true,
    body: html`
<h1>控制台</h1>
<nav><a href="${OWN_PATHS.consoleHealth}">健康检查</a> <a href="/">返回首页</a></nav>
${view.warnings.map(warning => html`<div class="notice bad"><p>${warning}</p></div>`)}
<section aria-labelledby="sessions">
<h2 id="sessions">在线用户</h2>
<form method="get" class="search" role="search">
<label for="username">按用户名查找</label>
<input id="username" name="username" value="${view.username}" autocomplete="off">
<button type="submit" class="button small">查找</button>
</form>
${view.sessions.length === 0 ? html`<p class="hint">没有找到登录的用户。</p>` : sessionTable(view)}
${view.next ? html`<p><a href="${nextUrl(view.username, view.next)}">下一页</a></p>` : ''}
</section>
<section aria-labelledby="settings">
<h2 id="settings">生效的设置</h2>
<table role="table" aria-labelledby="settings">
${headRow(['名称', '值'])}
<tbody role="rowgroup">${view.settings.map(([name, value]) => html`<tr role="row"><th scope="row" role="rowheader"><code>${name}</code></th><td role="cell"><code>${value}</code></td></tr>`)}</tbody>
</table>
</section>`,
  })
}

function sessionTable({ sessions, ownKey, providerNames }: ConsoleView) {
  const columns = ['用户', ...(providerNames ? ['登录方式'] : []), '角色', '登录时间', '最近活动', '有效期至', '操作']
  return html`<table role="table" aria-labelledby="sessions">
${headRow(columns)}
<tbody role="rowgroup">${sessions.map(session => sessionRow(session, session.key === ownKey, providerNames))}</tbody>
</table>`
}

/** The roles are said once more because on a phone, where the table is laid out as a list, browsers forget them. */
export function headRow(names: readonly string[]) {
  const cells = names.map(name => html`<th scope="col" role="columnheader">${name}</th>`)
  return html`<thead role="rowgroup"><tr role="row">${cells}</tr></thead>`
}

function cell(label: string, content: unknown) {
  return html`<td role="cell" data-label="${label}"><span>${content}</span></td>`
}

function sessionRow({ key, publicPart, expiresAt }: Listed, own: boolean, providerNames: ConsoleView['providerNames']) {
  const { provider = '' } = publicPart ?? {}
  const who = publicPart ? html`${publicPart.nickname} <code>${publicPart.username}</code>` : '（无法识别）'
  return html`<tr role="row">
<th scope="row" role="rowheader">${who}${own ? html` <span class="tag">当前会话</span>` : ''}</th>
${providerNames ? cell('登录方式', providerNames.get(provider) ?? provider) : ''}
${cell('角色', publicPart ? roleName(publicPart.userRole) : '')}
${cell('登录时间', publicPart ? moment(publicPart.signedInAt) : '')}
${cell('最近活动', publicPart ? moment(publicPart.seenAt) : '')}
${cell('有效期至', moment(expiresAt))}
<td role="cell">${endButtons(key, publicPart?.username ?? '')}</td>
</tr>`
}

function endButtons(key: string, username: string) {
  return html`<form method="post" action="${OWN_PATHS.endSession}" class="actions"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="结束 ${username} 的会话">结束会话</button>
<button type="submit" name="all" value="yes" class="button small quiet" aria-label="结束 ${username} 的全部会话">全部结束</button></form>`
}

function nextUrl(username: string, after: string): string {
  const query = new URLSearchParams({ ...(username && { username }), after })
  return `${OWN_PATHS.console}?${query}`
}
