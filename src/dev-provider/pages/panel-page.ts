// The control panel: what the provider does wrong at the moment, a row of choices for each way, and the sessions in brief.

import { html } from 'hono/html'
import type { GrantedSession } from '../grants.ts'
import { ALWAYS, KNOBS, type Knobs, USUAL } from '../panel/misbehaviour.ts'
import { type Html, page } from './page.ts'

const SESSIONS_SHOWN = 20

export function panelPage(knobs: Knobs, sessions: readonly GrantedSession[]): Html {
  return page(
    '控制面板',
    html`<section class="card">
<h1>控制面板</h1>
<p class="lead">让身份提供方出错、变慢、提前过期，看看您的应用如何应对。</p>
${summary(knobs)}
${KNOBS.map(knob => knobRow(knob, knobs[knob.name]))}
</section>
<section class="card">
<h2>会话 <span class="count">${sessions.length}</span></h2>
${sessions.length === 0 ? html`<p class="lead">还没有人登录。</p>` : sessionTable(sessions.slice(-SESSIONS_SHOWN).reverse())}
</section>`,
  )
}

function summary(knobs: Knobs): Html {
  const odd = KNOBS.filter(knob => knobs[knob.name] !== USUAL[knob.name])
  if (odd.length === 0) return html`<p class="summary" role="status">一切正常</p>`
  return html`<form class="summary" method="post" action="/panel">
<p role="status">${odd.map(knob => html`<span>${knob.label}：${amount(knob, knobs[knob.name])}</span> `)}</p>
<button name="reset" value="yes">恢复正常</button>
</form>`
}

type Knob = (typeof KNOBS)[number]

function knobRow(knob: Knob, current: number): Html {
  return html`<div class="knob" role="group" aria-labelledby="${knob.name}">
<h2 id="${knob.name}">${knob.label}</h2>
<p>${knob.hint}</p>
<form class="presets" method="post" action="/panel">
${knob.presets.map(preset => presetButton(knob, preset, preset === current))}
</form>
<form class="exact" method="post" action="/panel">
<label><span class="unseen">${knob.label}（${knob.unit}）</span>
<input type="number" name="${knob.name}" value="${current}" min="${knob.min}" max="${knob.max}" required></label>
<button class="quiet">设定</button>
</form>
</div>
`
}

function presetButton(knob: Knob, value: number, isCurrent: boolean): Html {
  return html`<button name="${knob.name}" value="${value}" aria-pressed="${String(isCurrent)}">${amount(knob, value)}</button>
`
}

function amount(knob: Knob, value: number): string {
  if (knob.unit === '次' && value === ALWAYS) return '一直'
  return value === 0 ? '关' : `${value} ${knob.unit}`
}

function sessionTable(sessions: readonly GrantedSession[]): Html {
  return html`<table>
<thead><tr><th scope="col">用户</th><th scope="col">登录时间</th><th scope="col">刷新</th></tr></thead>
<tbody>
${sessions.map(sessionRow)}
</tbody>
</table>`
}

function sessionRow({ user, since, refreshes }: GrantedSession): Html {
  const at = new Date(since)
  return html`<tr><td>${user.nickname} <span class="username">${user.username}</span></td>
<td><time datetime="${at.toISOString()}">${at.toLocaleString('zh-CN')}</time></td><td>${refreshes} 次</td></tr>
`
}
