// The account page, which is also the home page where there is no application behind: who you are, until when, and the
// way out, here or everywhere.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { page } from './layout.ts'
import { moment } from './moment.ts'

const ROLE_NAMES: Readonly<Record<string, string>> = { developer: '开发者', common: '普通用户' }

/** A role of the operator's choice is its own name. */
export function roleName(role: string): string {
  return (Object.hasOwn(ROLE_NAMES, role) && ROLE_NAMES[role]) || role
}

/** `providerName` only where there are several. */
export function accountPage(appName: string, { session, expiresAt }: LoadedSession, providerName?: string): string {
  const { nickname, username, ou_name, email } = session.userInfo
  return page({
    appName,
    title: '我的账号',
    script: 'moments.js',
    body: html`
<h1>${nickname || username}，您好</h1>
<dl>
${row('用户名', username)}
${row('组织', ou_name)}
${row('邮箱', email)}
${row('登录方式', providerName)}
${row('角色', html`${roleName(session.userRole)} <code>${session.userRole}</code>`)}
${row('有效期至', moment(expiresAt))}
</dl>
${session.userRole === 'developer' ? html`<p><a class="button quiet" href="${OWN_PATHS.console}">控制台</a></p>` : ''}
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">退出登录</button></form>
<form method="post" action="${OWN_PATHS.signOutEverywhere}"><button type="submit" class="button quiet">退出所有设备</button></form>`,
  })
}

function row(name: string, value: unknown) {
  return value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : ''
}
