// The page that asks who signs in: one button a user, and one to deny.

import { html } from 'hono/html'
import { DEV_USERS, type DevUser } from '../users.ts'
import { type Html, page } from './page.ts'

export function authorizePage(clientId: string): Html {
  return page(
    '选择身份',
    html`<section class="card">
<h1>以谁的身份登录？</h1>
<p class="lead">应用 <code>${clientId}</code> 请求读取您的用户信息。点击一位用户即可登录。</p>
<form method="post">
<ul class="users">
${DEV_USERS.map(userItem)}
</ul>
<button class="quiet wide" name="deny" value="yes">拒绝</button>
</form>
</section>
<p class="aside">想试试令牌过期、接口故障？打开<a href="/" target="_blank">控制面板</a></p>`,
  )
}

function userItem({ info, note }: DevUser): Html {
  return html`<li><button class="user" name="username" value="${info.username}">
<span class="avatar" aria-hidden="true">${info.nickname.slice(0, 1)}</span>
<span class="who"><span class="name">${info.nickname} <span class="username">${info.username}</span></span>
<span class="organisation">${info.ou_name}</span></span>
<span class="note">${note}</span>
</button></li>
`
}
