// Personal keys on the account page: the list, the form for a new one, and the page that shows a new key once.

import { html } from 'hono/html'
import {
  type KeyProblem,
  type KeyRequest,
  MAX_KEY_NAME_LENGTH,
  MAX_KEYS_PER_USER,
  type NewKey,
  type PersonalKey,
} from '../keys/personal.ts'
import { KEY_ICON } from '../pages/icons.ts'
import { confirm, moment, page, relativeMoment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'

export interface KeysView {
  /** Absent while the store is unavailable. */
  readonly keys: readonly PersonalKey[] | undefined
  /** PERSONAL_KEY_MAX_DAYS. */
  readonly maxDays: number
  /** Why no key was created. */
  readonly problem?: KeyProblem | 'bad_name' | 'bad_days' | undefined
  /** The initial values of the form. */
  readonly draft?: Partial<KeyRequest> | undefined
}

const DEFAULT_DAYS = 90

export function keySection(words: Words, { keys, problem, draft = {}, maxDays }: KeysView, now: number) {
  const { t } = words
  const { name = '', days = Math.min(DEFAULT_DAYS, maxDays) } = draft
  return html`<section aria-labelledby="keys">
<h2 id="keys">${t('keys.title')}</h2>
<p class="small">${t('keys.lead')}</p>
${problem ? html`<div class="notice bad" role="alert"><p>${t(`keys.${problem}`, { most: MAX_KEYS_PER_USER, longest: MAX_KEY_NAME_LENGTH, days: maxDays })}</p></div>` : ''}
<ul class="entries">${(keys ?? []).map(key => keyEntry(words, key, now))}</ul>
<form method="post" action="${OWN_PATHS.accountKeys}" class="new-key">
<label>${t('keys.name')}<input name="name" value="${name}" required maxlength="${MAX_KEY_NAME_LENGTH}" autocomplete="off"></label>
<label>${t('keys.days')}<input name="days" type="number" required min="1" max="${maxDays}" value="${days}"></label>
<button type="submit" class="button quiet">${t('keys.create')}</button></form>
</section>`
}

function keyEntry(words: Words, { id, name, expiresAt, usedAt }: PersonalKey, now: number) {
  const { t, rich } = words
  return html`<li>${KEY_ICON}<div><strong>${name}</strong>
<p class="small">${rich('keys.ends', { time: moment(words, expiresAt) })}</p>
<p class="small">${usedAt === undefined ? t('keys.never_used') : rich('keys.used', { time: relativeMoment(words, usedAt, now) })}</p></div>
${confirm(
  html`<summary class="button small quiet" aria-label="${t('keys.revoke_label', { name })}">${t('keys.revoke')}</summary>`,
  html`<p>${t('keys.revoke_question', { name })}</p>
<form method="post" action="${OWN_PATHS.accountKeysRevoke}"><input type="hidden" name="key" value="${id}">
<button type="submit" class="button small danger" aria-label="${t('keys.revoke_label', { name })}">${t('keys.revoke')}</button></form>`,
)}</li>`
}

/** Shown in place of a new key if the sign-in is too old. `path` signs in again and leads back to the form. */
export function signInForKeyPage(words: Words, path: string, minutes: number): string {
  const { t } = words
  return page({
    words,
    title: t('step_up.title'),
    // This page answers a form, so another language would need the form again.
    isOneLanguage: true,
    body: html`<h1>${t('step_up.title')}</h1>
<p class="lead">${t('keys.sign_in_again', { minutes })}</p>
<a class="button" href="${path}">${t('session.sign_in_again')}</a>
<a class="button quiet" href="${OWN_PATHS.account}">${t('keys.back')}</a>`,
  })
}

/** The only page that ever shows the key. */
export function newKeyPage(words: Words, { key, name, expiresAt }: NewKey): string {
  const { t, rich } = words
  return page({
    words,
    title: t('keys.new_title'),
    script: 'copy.js',
    styles: ['account.css'],
    body: html`<h1>${t('keys.new_title')}</h1>
<p class="lead">${t('keys.new_lead')}</p>
<dl><div><dt>${t('keys.name')}</dt><dd>${name}</dd></div></dl>
<p class="new-key-text"><code>${key}</code></p>
<p><button type="button" class="button small" hidden data-copy="${key}" data-copied="${t('audit.copied')}">${t('audit.copy')}</button></p>
<p class="small">${rich('keys.ends', { time: moment(words, expiresAt) })}</p>
<p class="small">${t('keys.new_use')}</p>
<p class="new-key-text"><code>curl -H 'Authorization: Bearer ${key.slice(0, 3)}…'</code></p>
<div class="ways"><p><a class="button quiet" href="${OWN_PATHS.account}">${t('keys.back')}</a></p></div>`,
  })
}
