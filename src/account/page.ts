// The account page: who you are, your devices and your last sign-ins, and the way out, here or elsewhere.

import { html } from 'hono/html'
import type { DeviceKind } from '../pages/device-name.ts'
import { DEVICE_ICONS } from '../pages/icons.ts'
import { moment, page } from '../pages/layout.ts'
import { displayName, nameBefore, roleName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
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
  /** Only where there are several. */
  readonly providerName: string | undefined
  readonly own: Device
  /** Absent, like the sign-ins, if the store is away. */
  readonly others: { readonly devices: readonly Device[]; readonly areMore: boolean } | undefined
  readonly signIns: readonly SignIn[] | undefined
  /** When the session ends without activity, where that is set. */
  readonly idleEnd?: number | undefined
  /** How many have just been ended. */
  readonly ended: number | undefined
  /** Where users can have keys of their own. */
  readonly keys: KeysView | undefined
}

export function accountPage(words: Words, loaded: LoadedSession, view: AccountView): string {
  const { t } = words
  return page({
    words,
    title: t('account.title'),
    script: 'moments.js',
    styles: ['account.css'],
    body: html`
<h1>${t('account.greeting', { name: displayName(loaded.session.userInfo) })}</h1>
${endedNotice(words, view)}
${view.others && view.signIns ? '' : html`<div class="notice bad" role="alert"><p>${t('account.store_away')}</p></div>`}
${identityList(words, loaded, view)}
${deviceSection(words, view)}
${view.keys ? keySection(words, view.keys) : ''}
${view.signIns ? signInSection(words, view.signIns) : ''}
<div class="ways">${signOutForms(words)}
${consoleLink(words, loaded)}
<p><a class="button quiet" href="/">${t('page.home')}</a></p></div>`,
  })
}

const MOST_GROUPS_SHOWN = 20

export function identityList(
  words: Words,
  { session, expiresAt }: LoadedSession,
  { providerName, idleEnd }: Pick<AccountView, 'providerName' | 'idleEnd'>,
) {
  const { username, ou_name, email } = session.userInfo
  const { groups = [] } = session
  const { t } = words
  const more = groups.length > MOST_GROUPS_SHOWN ? ' …' : ''
  return html`<dl>
${fact(t('account.username'), username)}
${fact(t('account.organisation'), ou_name)}
${fact(t('account.email'), email)}
${fact(t('session.provider'), providerName)}
${fact(t('session.role'), html`${nameBefore(roleName(words, session.userRole), session.userRole)}<code>${session.userRole}</code>`)}
${groups.length > 0 ? fact(t('account.groups'), html`${groups.slice(0, MOST_GROUPS_SHOWN).map(group => html`<code>${group}</code> `)}${more}`) : ''}
${fact(t('session.expires'), moment(words, expiresAt))}
${idleEnd === undefined ? '' : fact(t('session.idle_ends'), moment(words, idleEnd))}
</dl>`
}

export function consoleLink({ t }: Words, { session }: LoadedSession) {
  return session.userRole === 'developer'
    ? html`<p><a class="button quiet" href="${OWN_PATHS.console}">${t('console.title')}</a></p>`
    : ''
}

export function signOutForms({ t, paths }: Words) {
  return html`<form method="post" action="${paths.logout}"><button type="submit" class="button quiet">${t('sign_out.title')}</button></form>
<form method="post" action="${OWN_PATHS.signOutEverywhere}"><button type="submit" class="button quiet">${t('account.sign_out_everywhere')}</button></form>`
}

function fact(name: string, value: unknown) {
  return value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : ''
}

function endedNotice({ t }: Words, { ended }: AccountView) {
  if (ended === undefined) return ''
  const sentence = ended > 0 ? t('account.ended', { ended }) : t('account.ended_none')
  return html`<div class="notice good" role="status"><p>${sentence}</p></div>`
}

function deviceSection(words: Words, { own, others }: AccountView) {
  const { t } = words
  const { devices = [], areMore = false } = others ?? {}
  return html`<h2>${t('account.devices')}</h2>
<ul class="entries">
<li>${DEVICE_ICONS[own.kind]}<div><strong>${own.name}</strong> <span class="tag success">${t('account.own_device')}</span>${deviceFields(words, own)}</div></li>
${devices.map(device => html`<li>${DEVICE_ICONS[device.kind]}<div><strong>${device.name}</strong>${deviceFields(words, device)}</div>${endForm(words, device)}</li>`)}
</ul>
${areMore ? html`<p class="hint">${t('account.more_devices')}</p>` : ''}
${devices.length > 0 ? html`<form method="post" action="${OWN_PATHS.accountEnd}"><button type="submit" name="others" value="yes" class="button quiet">${t('account.end_others')}</button></form>` : ''}`
}

function deviceFields(words: Words, { address, signedInAt, seenAt }: Device) {
  const { t, rich } = words
  return html`<p class="small">${address ?? t('device.address_unknown')}</p>
${signedInAt === undefined ? '' : html`<p class="small">${rich('account.since', { time: moment(words, signedInAt) })}</p>`}
${seenAt === undefined ? '' : html`<p class="small">${rich('account.seen', { time: moment(words, seenAt) })}</p>`}`
}

function endForm({ t }: Words, { key, name, address = t('device.address_unknown') }: Device) {
  return html`<form method="post" action="${OWN_PATHS.accountEnd}"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="${t('account.end_label', { device: name, address })}">${t('account.end')}</button></form>`
}

function signInSection(words: Words, signIns: readonly SignIn[]) {
  const { t } = words
  const hasNew = signIns.some(({ isNew }) => isNew)
  return html`<h2>${t('account.sign_ins')}</h2>
${signIns.length === 0 ? html`<p class="small">${t('account.no_sign_ins')}</p>` : ''}
${hasNew ? html`<p class="small">${t('account.new_device_hint')}</p>` : ''}
<ul class="entries">${signIns.map(signIn => signInEntry(words, signIn))}</ul>`
}

function signInEntry(words: Words, { time, device, address, isNew }: SignIn) {
  const { t } = words
  const isMarked = isNew ? html` <span class="tag warning">${t('account.new_device')}</span>` : ''
  return html`<li><div>${moment(words, time)}${isMarked}
<p class="small">${device} · ${address ?? t('device.address_unknown')}</p></div></li>`
}
