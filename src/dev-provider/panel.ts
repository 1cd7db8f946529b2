// The control panel: GET / shows how the provider behaves and who is signed in, POST /panel changes its behaviour.

import type { Context } from 'hono'
import { html } from 'hono/html'
import { readFormFields, senderOf } from './client.ts'
import { ALWAYS, DEFAULT_KNOBS, type FaultInjection, KNOBS, type Knobs, readChange } from './fault-injection.ts'
import { type DevHtml, devPage, messagePage } from './page.ts'
import type { GrantedSession, Grants } from './tokens.ts'
import type { DevWords, WordsOf } from './words.ts'

export function panelRoute(grants: Grants, faults: FaultInjection, wordsOf: WordsOf, now: () => number) {
  return (c: Context) => c.html(panelPage(wordsOf(c), faults.current(), grants.sessions(now())))
}

export function panelChangeRoute(faults: FaultInjection, wordsOf: WordsOf) {
  return async (c: Context): Promise<Response> => {
    const words = wordsOf(c)
    if (senderOf(c.req.raw) !== 'own page') return c.html(messagePage(words, words.panelOnly), 403)
    const form = await readFormFields(c.req.raw)
    if (form?.has('reset')) {
      faults.reset()
      return c.redirect('/', 303)
    }
    const change = form && readChange(form)
    if (!change) return c.html(messagePage(words, words.badValue), 400)
    faults.change(change)
    return c.redirect('/', 303)
  }
}

// The page of the control panel: the current misbehaviour, a row of choices for each kind, and the sessions in brief.

const SESSIONS_SHOWN = 20

export function panelPage(words: DevWords, knobs: Knobs, sessions: readonly GrantedSession[]): DevHtml {
  const shown = sessions.slice(-SESSIONS_SHOWN).reverse()
  return devPage(
    words,
    words.panel,
    html`<section class="card">
<h1>${words.panel}</h1>
<p class="lead">${words.panelLead}</p>
${summary(words, knobs)}
${KNOBS.map(knob => knobRow(words, knob, knobs[knob.name]))}
</section>
<section class="card">
<h2>${words.sessions} <span class="count">${sessions.length}</span></h2>
${sessions.length === 0 ? html`<p class="lead">${words.nobody}</p>` : sessionTable(words, shown)}
</section>`,
  )
}

function summary(words: DevWords, knobs: Knobs): DevHtml {
  const odd = KNOBS.filter(knob => knobs[knob.name] !== DEFAULT_KNOBS[knob.name])
  if (odd.length === 0) return html`<p class="summary" role="status">${words.allWell}</p>`
  return html`<form class="summary" method="post" action="/panel">
<p role="status">${odd.map(knob => html`<span>${words.knobs[knob.name].label}${words.colon}${amount(words, knob, knobs[knob.name])}</span> `)}</p>
<button name="reset" value="yes">${words.backToUsual}</button>
</form>`
}

type Knob = (typeof KNOBS)[number]

function knobRow(words: DevWords, knob: Knob, current: number): DevHtml {
  const { label, hint } = words.knobs[knob.name]
  return html`<div class="knob" role="group" aria-labelledby="${knob.name}">
<h2 id="${knob.name}">${label}</h2>
<p>${hint}</p>
<form class="presets" method="post" action="/panel">
${knob.presets.map(preset => presetButton(words, knob, preset, preset === current))}
</form>
<form class="exact" method="post" action="/panel">
<label><span class="unseen">${label} (${words.units[knob.unit]})</span>
<input type="number" name="${knob.name}" value="${current}" min="${knob.min}" max="${knob.max}" required></label>
<button class="quiet">${words.set}</button>
</form>
</div>
`
}

function presetButton(words: DevWords, knob: Knob, value: number, isCurrent: boolean): DevHtml {
  return html`<button name="${knob.name}" value="${value}" aria-pressed="${String(isCurrent)}">${amount(words, knob, value)}</button>
`
}

function amount({ units, always, off }: DevWords, { unit }: Knob, value: number): string {
  if (unit === 'times' && value === ALWAYS) return always
  return value === 0 ? off : `${value} ${units[unit]}`
}

function sessionTable(words: DevWords, sessions: readonly GrantedSession[]): DevHtml {
  return html`<table>
<thead><tr><th scope="col">${words.user}</th><th scope="col">${words.signedInAt}</th><th scope="col">${words.refreshes}</th></tr></thead>
<tbody>
${sessions.map(session => sessionRow(words, session))}
</tbody>
</table>`
}

function sessionRow({ lang, units }: DevWords, { user, since, refreshes }: GrantedSession): DevHtml {
  const at = new Date(since)
  return html`<tr><td>${user.nickname} <span class="username">${user.username}</span></td>
<td><time datetime="${at.toISOString()}">${at.toLocaleString(lang)}</time></td><td>${refreshes} ${units.times}</td></tr>
`
}
