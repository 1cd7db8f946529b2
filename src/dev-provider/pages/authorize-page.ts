// The page that asks who signs in: one button a user, and one to deny.

import { html } from 'hono/html'
import type { Words } from '../dev-words.ts'
import type { DevUser } from '../users.ts'
import { type Html, page } from './page.ts'

export function authorizePage(words: Words, clientId: string, users: readonly DevUser[]): Html {
  const [before, behind] = words.chooseLead
  return page(
    words,
    words.chooseTitle,
    html`<section class="card">
<h1>${words.chooseHeading}</h1>
<p class="lead">${before} <code>${clientId}</code> ${behind}</p>
<form method="post">
<ul class="users">
${users.map(user => userItem(words, user))}
</ul>
<button class="quiet wide" name="deny" value="yes">${words.deny}</button>
</form>
</section>
<p class="aside">${words.panelHint} <a href="/" target="_blank">${words.panel}</a></p>`,
  )
}

function userItem(words: Words, { info, note }: DevUser): Html {
  const name = info.nickname.trim() || info.username
  return html`<li><button class="user" name="username" value="${info.username}">
<span class="avatar" aria-hidden="true">${[...name][0]}</span>
<span class="who"><span class="name">${name} <span class="username">${info.username}</span></span>
<span class="organisation">${info.ou_name}</span>${groupList(words, info.groups)}</span>
${note ? html`<span class="note">${words.notes[note]}</span>` : ''}
</button></li>
`
}

function groupList({ groups }: Words, names: readonly string[]): Html | string {
  if (names.length === 0) return ''
  return html`<span class="groups"><span class="unseen">${groups}</span>${names.map(name => html` <span class="group">${name}</span>`)}</span>`
}
