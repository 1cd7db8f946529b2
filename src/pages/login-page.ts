// The login page: one button for each provider, what went wrong last time, and what is missing in the configuration.

import { html } from 'hono/html'
import type { TextConfig } from '../config/file.ts'
import { isLoginError } from '../errors.ts'
import type { EndReason } from '../session/end-reasons.ts'
import type { Phrase } from '../text/text.ts'
import { page } from './layout.ts'
import { RETURN_FIELD, supportBlock } from './notices.ts'
import { providerMark } from './provider-marks.ts'
import { shortCode, shortPath } from './shown-text.ts'
import type { Words } from './words.ts'

/** One provider that users can sign in through. */
export interface SignInOption {
  readonly id: string
  readonly name: Phrase | undefined
  readonly preset: string
  /** Whether the server must know about an attempt before the browser leaves. */
  readonly remembered: boolean
  /** The authorization address without its state; empty if the server has to build it. */
  readonly authorizationUrl: string
}

interface LoginView {
  /** The missing settings, without which no user can sign in. */
  readonly missing: readonly string[]
  /** In the order of the configuration. */
  readonly ways: readonly SignInOption[]
  /** The provider that this browser signed in with last, if there are several. */
  readonly lastUsed?: string | undefined
  readonly error: string | undefined
  /** The id of the request that failed, if one did. */
  readonly requestId: string
  readonly signedIn: { readonly name: string; readonly continueTo: string } | undefined
  /** The page that the visitor asked for, if it is not the home page. */
  readonly wanted: string | undefined
  /** `wanted`, signed for the form of this tab. */
  readonly signed?: string | undefined
  /** A sign-out has just happened. */
  readonly signedOut: 'here' | 'everywhere' | undefined
  /** The store cannot be reached, so a sign-in could not be saved. */
  readonly isStoreUnavailable?: boolean
  /** The sign-in that led here failed because of the store. */
  readonly isStoreFailure?: boolean
  /** Why the session of this browser has ended. */
  readonly endReason?: EndReason | undefined
}

/** Form field: the page was shown to a visitor, who continues if another tab has signed in since. */
export const VISITOR_FIELD = 'visitor'
/** Form field: what the script knows about the fragment. */
export const FRAGMENT_FIELD = 'fragment'

export function loginPage(words: Words, view: LoginView): string {
  const { t } = words
  const { missing, ways, lastUsed, error, signedIn, signedOut } = view
  const unusable = missing.length > 0
  const shown = [...ways.filter(({ id }) => id === lastUsed), ...ways.filter(({ id }) => id !== lastUsed)]
  return page({
    words,
    title: t('login.title'),
    script: 'login.js',
    body: html`
<h1>${words.hasOwnName ? words.appName : t('login.title')}</h1>
${error === undefined ? '' : errorNotice(words, error, view)}
${signedOut && !signedIn ? signedOutNotice(words, signedOut) : ''}
${view.endReason && !signedIn ? endReasonNotice(words, view.endReason) : ''}
${unusable ? missingNotice(words, missing) : ''}
${view.isStoreUnavailable ? storeUnavailableNotice(words) : ''}
${signedIn ? signedInNotice(words, signedIn) : lead(words, view)}
${shown.map((way, n) => signInForm(words, way, { isMain: way === ways[0], isOnly: ways.length === 1, isLastUsed: way.id === lastUsed, quiet: n > 0 || signedIn !== undefined, unusable, isVisitor: signedIn === undefined, isRetry: error !== undefined }, view.signed))}
<p class="hint">${t('login.hint')}</p>
${ownWords(words)}
${error === undefined ? '' : supportBlock(words, { code: shortCode(error), requestId: view.requestId })}`,
  })
}

/** One sentence. A notice above already says what to do. */
function lead({ t, rich }: Words, view: LoginView) {
  const { wanted, ways, missing, error, signedOut, endReason, isStoreUnavailable } = view
  if (wanted !== undefined)
    return html`<p class="lead">${rich('login.wanted', { path: html`<bdi><code>${shortPath(wanted)}</code></bdi>` })}</p>`
  if (ways.length > 1) return html`<p class="lead">${t('login.choose')}</p>`
  const hasNotice = error !== undefined || signedOut || endReason || isStoreUnavailable || missing.length > 0
  return hasNotice ? '' : html`<p class="lead">${t('login.use_account')}</p>`
}

/** The organisation's own note and links. */
function ownWords({ lang, branding, t }: Words) {
  const { note, links = [] } = branding.loginPage
  return html`${note === undefined ? '' : html`<p class="small">${textIn(note, lang)}</p>`}
${links.length === 0 ? '' : html`<nav class="links small" aria-label="${t('login.links')}">${links.map(({ text, href }) => html`<a href="${href}">${textIn(text, lang)}</a>`)}</nav>`}`
}

/** If a language is missing, the first one is better than nothing. */
function textIn(text: TextConfig, lang: string): string {
  return typeof text === 'string' ? text : (text[lang] ?? Object.values(text)[0] ?? '')
}

type ButtonState = 'isMain' | 'isOnly' | 'isLastUsed' | 'quiet' | 'unusable' | 'isVisitor' | 'isRetry'

function signInForm(
  { t, render, paths }: Words,
  way: SignInOption,
  { isMain, isOnly, isLastUsed, quiet, unusable, isVisitor, isRetry }: Record<ButtonState, boolean>,
  signed: string | undefined,
) {
  const { id, authorizationUrl, remembered } = way
  const ownName = way.name && render(way.name)
  const name = ownName ?? t('login.provider')
  const mark = providerMark(way.preset)
  return html`<form id="${isMain ? 'sign-in' : `sign-in-${id}`}" class="sign-in" method="post" action="${paths.login}" data-callback="${paths.callback}" data-authorize="${authorizationUrl}" data-remembered="${remembered ? 'true' : 'false'}" data-visitor="${isVisitor ? 'true' : 'false'}" data-retry="${isRetry ? 'true' : 'false'}">
${signed === undefined ? '' : html`<input type="hidden" name="${RETURN_FIELD}" value="${signed}">`}${isVisitor ? html`<input type="hidden" name="${VISITOR_FIELD}" value="true">` : ''}${isOnly ? '' : html`<input type="hidden" name="provider" value="${id}">`}<button type="submit" class="${quiet ? 'button quiet' : 'button'}" ${mark ? '' : html`data-mark="${initialOf(ownName)}"`} ${unusable ? 'disabled' : ''}>${mark ?? ''}${t('login.button', { name })}${isLastUsed ? html` <small>${t('login.last_used')}</small>` : ''}</button>
</form>`
}

/** The first letter of a provider's name, which tells several providers apart; without a name a drawing of a person is shown. */
function initialOf(name = ''): string {
  const [initial = ''] = name.trim()
  return initial.toUpperCase()
}

function errorNotice(words: Words, code: string, { signedIn, isStoreUnavailable, isStoreFailure }: LoginView) {
  const { t, rich } = words
  const known = isLoginError(code) ? code : 'other'
  // The notice about the store gives the cause.
  if (known === 'callback_error' && isStoreUnavailable) return ''
  if (known === 'callback_error' && isStoreFailure) return storeFailureNotice(words)
  // A step-up that was answered by another account ends here, too.
  const remedy =
    known === 'callback_error' && signedIn ? t('error.callback_error.still_signed_in') : t(`error.${known}.remedy`)
  return html`<div class="notice bad" role="alert">
<p>${t(`error.${known}.message`)}</p>
<p class="next">${remedy}</p>
${known === 'other' ? html`<p class="small">${rich('login.unknown_error', { code: html`<bdi><code>${shortCode(code)}</code></bdi>` })}</p>` : ''}
</div>`
}

function missingNotice({ t }: Words, missing: readonly string[]) {
  return html`<div class="notice bad" role="alert">
<p>${t('login.missing')}</p>
<p class="next">${t('login.missing_settings')}</p>
<ul>${missing.map(name => html`<li><code>${name}</code></li>`)}</ul>
</div>`
}

function storeUnavailableNotice({ t }: Words) {
  return html`<div class="notice bad" role="alert"><p>${t('login.store_away')}</p>
<p class="next">${t('login.store_away_more')}</p></div>`
}

/** A sign-in failed because of the store, which works again. */
function storeFailureNotice({ t }: Words) {
  return html`<div class="notice bad" role="alert"><p>${t('login.store_failed')}</p>
<p class="next">${t('login.store_failed_more')}</p></div>`
}

function signedInNotice({ t, rich }: Words, { name, continueTo }: { name: string; continueTo: string }) {
  return html`<div class="notice good" role="status"><p>${rich('login.signed_in', { name: html`<strong>${name}</strong>` })}</p></div>
<a class="button" href="${continueTo}">${t('login.continue')}</a>
<p class="hint">${t('login.other_account')}</p>`
}

function signedOutNotice({ t }: Words, where: 'here' | 'everywhere') {
  return html`<div class="notice good" role="status"><p><strong>${t(`login.signed_out_${where}`)}</strong></p></div>`
}

function endReasonNotice({ t }: Words, reason: EndReason) {
  return html`<div class="notice mild" role="status"><p><strong>${t(`ended.${reason}`)}</strong></p>
<p class="small">${t(`ended.${reason}_more`)}</p></div>`
}
