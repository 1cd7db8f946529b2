// The account page: who you are, your devices, your keys and your last sign-ins, and how to sign out, here or elsewhere. Actions
// that cannot be undone ask first, in a part that opens without scripts, and name what they affect.

import { html } from 'hono/html'
import type { DeviceKind } from '../pages/device-name.ts'
import { DEVICE_ICONS } from '../pages/icons.ts'
import { confirm, moment, page, relativeMoment } from '../pages/layout.ts'
import { displayName, nameBefore, roleName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { latestEnd, tokenExpiresAt } from '../session/record.ts'
import { type KeysView, keySection } from './key-section.ts'

export interface Device {
  readonly key: string
  readonly kind: DeviceKind
  readonly name: string
  readonly address?: string
  readonly signedInAt?: number
  readonly seenAt?: number
}

interface SignIn {
  readonly time: number
  readonly device: string
  readonly address: string | undefined
  readonly isNew: boolean
}

export interface AccountView {
  readonly now: number
  /** Only if there are several. */
  readonly providerName: string | undefined
  readonly own: Device
  /** Absent, like the sign-ins, while the store is unavailable. */
  readonly others: { readonly devices: readonly Device[]; readonly areMore: boolean } | undefined
  readonly signIns: readonly SignIn[] | undefined
  readonly ends: SessionEnds
  /** How many have just been ended. */
  readonly ended: number | undefined
  /** Absent if users cannot have personal keys. */
  readonly keys: KeysView | undefined
  /** Whether the portal has any application. */
  readonly hasPortal?: boolean
}

export interface SessionEnds {
  /** When the session ends, whatever happens. */
  readonly end: number
  /** When it ends without activity, where SESSION_IDLE_MINUTES is set. */
  readonly idleEnd: number | undefined
  /** When the session ends unless a request refreshes it first. */
  readonly unusedEnd?: number | undefined
}

/**
 * A refreshable session that ends with its access token ends then only if there is no request: requests refresh it until
 * SESSION_MAX_HOURS.
 */
export function sessionEnds(
  { session, expiresAt, signedInAt }: LoadedSession,
  maxHours: number,
  idleEnd: number | undefined,
): SessionEnds {
  const isInStep = session.refreshToken && expiresAt === tokenExpiresAt(session)
  if (!isInStep) return { end: expiresAt, idleEnd }
  const isIdleFirst = idleEnd !== undefined && idleEnd <= expiresAt
  return { end: latestEnd(signedInAt, maxHours), idleEnd, unusedEnd: isIdleFirst ? undefined : expiresAt }
}

export function accountPage(words: Words, loaded: LoadedSession, view: AccountView): string {
  const { t } = words
  return page({
    words,
    title: t('account.title'),
    script: 'account.js',
    styles: ['account.css'],
    body: html`
<h1>${t('account.greeting', { name: displayName(loaded.session.userInfo) })}</h1>
${endedNotice(words, view)}
${view.others && view.signIns ? '' : html`<div class="notice bad" role="alert"><p>${t('account.store_away')}</p></div>`}
<div class="account">
<section class="profile" aria-labelledby="profile">
<h2 id="profile">${t('account.profile')}</h2>
${identityList(words, loaded, view)}
</section>
<div class="sections">
${deviceSection(words, view)}
${view.keys ? keySection(words, view.keys, view.now) : ''}
${view.signIns ? signInSection(words, view.signIns, view.now) : ''}
</div>
<section class="ways" aria-labelledby="sign-out">
<h2 id="sign-out">${t('account.sign_out')}</h2>
${signOutForm(words)}
${everywhere(words, view)}
${view.hasPortal ? html`<p><a class="button quiet" href="${OWN_PATHS.portal}">${t('portal.title')}</a></p>` : ''}
${consoleLink(words, loaded)}
<p><a class="button quiet" href="/">${t('page.home')}</a></p>
</section>
</div>`,
  })
}

const MAX_SHOWN_GROUPS = 20

export function identityList(
  words: Words,
  { session }: LoadedSession,
  { providerName, ends }: Pick<AccountView, 'providerName' | 'ends'>,
) {
  const { username, ou_name, email } = session.userInfo
  const { groups = [] } = session
  const { t } = words
  const more = groups.length > MAX_SHOWN_GROUPS ? ' …' : ''
  return html`<dl>
${detailRow(t('account.username'), username)}
${detailRow(t('account.organisation'), ou_name)}
${detailRow(t('account.email'), email)}
${detailRow(t('session.provider'), providerName)}
${detailRow(t('session.role'), html`${nameBefore(roleName(words, session.userRole), session.userRole)}<code>${session.userRole}</code>`)}
${groups.length > 0 ? detailRow(t('account.groups'), html`${groups.slice(0, MAX_SHOWN_GROUPS).map(group => html`<code>${group}</code> `)}${more}`) : ''}
${detailRow(t('session.expires'), moment(words, ends.end))}
${ends.idleEnd === undefined ? '' : detailRow(t('session.idle_ends'), moment(words, ends.idleEnd))}
${ends.unusedEnd === undefined ? '' : detailRow(t('session.unused_ends'), moment(words, ends.unusedEnd))}
</dl>`
}

export function consoleLink({ t }: Words, { session }: LoadedSession) {
  return session.userRole === 'developer'
    ? html`<p><a class="button quiet" href="${OWN_PATHS.console}">${t('console.title')}</a></p>`
    : ''
}

export function signOutForm({ t, paths }: Words) {
  return html`<form method="post" action="${paths.logout}"><button type="submit" class="button quiet">${t('sign_out.title')}</button></form>`
}

/** After a sign-in that was not the user's: signs out everything, including this device and the keys. */
function everywhere(words: Words, { own, others, keys }: AccountView) {
  const { t } = words
  const { devices = [], areMore = false } = others ?? {}
  const names = (keys?.keys ?? []).map(({ name }) => name)
  return html`<div id="not-me" class="not-me">
<h3>${t('account.not_me_title')}</h3>
<ol>
<li>${t('account.not_me_end')}</li>
<li>${t('account.not_me_password')}</li>
<li>${t('account.not_me_tell')}${words.support ? html` <a href="${words.support.href}">${words.support.text}</a>` : ''}</li>
</ol>
</div>
${confirm(
  html`<summary class="button quiet">${t('account.sign_out_everywhere')}</summary>`,
  html`<p>${t('account.everywhere_question')}</p>
${deviceNames(words, [own, ...devices], areMore)}
${names.length === 0 ? '' : html`<p>${t('account.everywhere_keys')}</p><ul>${names.map(name => html`<li>${name}</li>`)}</ul>`}
<form method="post" action="${OWN_PATHS.signOutEverywhere}"><button type="submit" class="button danger">${t('account.sign_out_everywhere')}</button></form>`,
)}`
}

function deviceNames({ t }: Words, devices: readonly Device[], areMore: boolean) {
  return html`<ul>${devices.map(({ name, address }) => html`<li>${name} · ${address ?? t('device.address_unknown')}</li>`)}${areMore ? html`<li>…</li>` : ''}</ul>`
}

function detailRow(name: string, value: unknown) {
  return value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : ''
}

function endedNotice({ t }: Words, { ended }: AccountView) {
  if (ended === undefined) return ''
  const sentence = ended > 0 ? t('account.ended', { ended }) : t('account.ended_none')
  return html`<div class="notice good" role="status"><p>${sentence}</p></div>`
}

function deviceSection(words: Words, { own, others, now }: AccountView) {
  const { t } = words
  const { devices = [], areMore = false } = others ?? {}
  return html`<section aria-labelledby="devices">
<h2 id="devices">${t('account.devices')}</h2>
<ul class="entries">
<li>${DEVICE_ICONS[own.kind]}<div><strong>${own.name}</strong> <span class="tag success">${t('account.own_device')}</span>${deviceFields(words, own, now)}</div></li>
${devices.map(device => html`<li>${DEVICE_ICONS[device.kind]}<div><strong>${device.name}</strong>${deviceFields(words, device, now)}${notMe(words, device)}</div>${endForm(words, device)}</li>`)}
</ul>
${areMore ? html`<p class="hint">${t('account.more_devices')}</p>` : ''}
${devices.length > 0 ? endOthersForm(words, devices, areMore) : ''}
</section>`
}

function deviceFields(words: Words, { address, signedInAt, seenAt }: Device, now: number) {
  const { t, rich } = words
  return html`<p class="small">${address ?? t('device.address_unknown')}</p>
${signedInAt === undefined ? '' : html`<p class="small">${rich('account.since', { time: relativeMoment(words, signedInAt, now) })}</p>`}
${seenAt === undefined ? '' : html`<p class="small">${rich('account.seen', { time: relativeMoment(words, seenAt, now) })}</p>`}`
}

/** Leads to the steps for a sign-in that was not the user's. */
function notMe({ t }: Words, { name, address = t('device.address_unknown') }: Pick<Device, 'name' | 'address'>) {
  return html`<p class="small"><a href="#not-me" aria-label="${t('account.not_me_label', { device: name, address })}">${t('account.not_me')}</a></p>`
}

function endForm({ t }: Words, { key, name, address = t('device.address_unknown') }: Device) {
  return confirm(
    html`<summary class="button small quiet" aria-label="${t('account.end_label', { device: name, address })}">${t('account.end')}</summary>`,
    html`<p>${t('account.end_question', { device: name, address })}</p>
<form method="post" action="${OWN_PATHS.accountEnd}"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small danger" aria-label="${t('account.end_label', { device: name, address })}">${t('account.end')}</button></form>`,
  )
}

function endOthersForm(words: Words, devices: readonly Device[], areMore: boolean) {
  const { t } = words
  return confirm(
    html`<summary class="button quiet">${t('account.end_others')}</summary>`,
    html`<p>${t('account.end_others_question')}</p>
${deviceNames(words, devices, areMore)}
<form method="post" action="${OWN_PATHS.accountEnd}"><button type="submit" name="others" value="yes" class="button danger">${t('account.end_others')}</button></form>`,
  )
}

function signInSection(words: Words, signIns: readonly SignIn[], now: number) {
  const { t } = words
  const hasNew = signIns.some(({ isNew }) => isNew)
  return html`<section aria-labelledby="activity">
<h2 id="activity">${t('account.sign_ins')}</h2>
${signIns.length === 0 ? html`<p class="small">${t('account.no_sign_ins')}</p>` : ''}
${hasNew ? html`<p class="small">${t('account.new_device_hint')}</p>` : ''}
<ul class="entries">${signIns.map(signIn => signInEntry(words, signIn, now))}</ul>
</section>`
}

function signInEntry(words: Words, signIn: SignIn, now: number) {
  const { t } = words
  const { time, device, address, isNew } = signIn
  const isMarked = isNew ? html` <span class="tag warning">${t('account.new_device')}</span>` : ''
  return html`<li><div>${relativeMoment(words, time, now)}${isMarked}
<p class="small">${device} · ${address ?? t('device.address_unknown')}</p></div>
${notMe(words, { name: device, ...(address !== undefined && { address }) })}</li>`
}
