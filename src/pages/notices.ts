// Pages that only show a message: not found, refused, out of order, confirmation of a sign-out.

import { html } from 'hono/html'
import type { RefusalCode } from '../access/conditions.ts'
import type { Rule } from '../config/file.ts'
import { CONSOLE_ROLE } from '../config/role-names.ts'
import { DAYS, type Hours } from '../config/rule-conditions.ts'
import { OWN_PATHS } from '../paths.ts'
import type { Session } from '../session/record.ts'
import { assetUrl } from './branding.ts'
import { type Html, page } from './layout.ts'
import { displayName, nameBefore, roleName } from './shown-text.ts'
import { DIGIT_BEFORE_HAN, type Words } from './words.ts'

/** Their sentences are `notice.<name>.title`, `.text` and `.remedy`. */
export const NOTICES = {
  trial_done: { status: 200 },
  bad_request: { status: 400 },
  entry_failed: { status: 400 },
  refused: { status: 403 },
  foreign: { status: 403 },
  outside_network: { status: 403 },
  outside_hours: { status: 403 },
  foreign_origin: { status: 403 },
  step_up_failed: { status: 403 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  too_large: { status: 413 },
  uri_too_long: { status: 414 },
  too_many: { status: 429 },
  headers_too_large: { status: 431 },
  broken: { status: 500 },
  bad_gateway: { status: 502 },
  no_token: { status: 502 },
  busy: { status: 503 },
  gateway_timeout: { status: 504 },
  unavailable: { status: 503 },
  provider_unavailable: { status: 503 },
  sign_in_unavailable: { status: 503 },
} as const

export type NoticeName = keyof typeof NOTICES

interface NoticeOptions {
  /** One of our own paths, if there is something to try again. */
  readonly retryPath?: string | undefined
  /** Shown to a signed-in user, so that they know that the sign-in is not the cause. */
  readonly isUser?: boolean | undefined
  /** What the user can read out to the operator. */
  readonly requestId?: string
  /** The page tries again automatically after this many seconds; only with `retryPath`. */
  readonly retrySeconds?: number | undefined
}

export function noticeText({ t }: Words, name: NoticeName, isUser = false): string {
  const text = t(`notice.${name}.text`)
  return isUser ? t('notice.signed_in', { text }) : text
}

export function noticePage(
  words: Words,
  name: NoticeName,
  { retryPath, isUser, requestId, retrySeconds }: NoticeOptions = {},
): string {
  const { t } = words
  return noticeFrame(
    words,
    name,
    html`<p class="next">${t(`notice.${name}.remedy`)}</p>
${retryPath === undefined ? '' : html`<a class="button" href="${retryPath}">${t('notice.retry')}</a>`}
${retryPath === undefined || retrySeconds === undefined ? '' : retryCountdown(words, retrySeconds)}
<a class="button quiet" href="/">${t('page.home')}</a>
${NOTICES[name].status < 400 ? '' : supportBlock(words, { code: name, requestId })}`,
    noticeText(words, name, isUser),
  )
}

const RETRY_SCRIPT = assetUrl('retry.js')

/** The script fills it in, counts down and loads the page again; without scripts there is the button above. */
function retryCountdown({ t }: Words, seconds: number): Html {
  return html`<div class="retry small" data-seconds="${seconds}" data-stopped="${t('notice.retry_stopped')}" data-given-up="${t('notice.retry_given_up')}" hidden>
<span role="timer" data-text="${t('notice.retry_in', { seconds: '#' })}"></span>
<button type="button" class="plain">${t('notice.retry_stop')}</button></div>
<script type="module" src="${RETRY_SCRIPT}"></script>`
}

const COPY_SCRIPT = assetUrl('copy.js')

interface SupportDetails {
  /** The code by which documentation and administrators know the error. */
  readonly code: string
  readonly requestId: string | undefined
  /** The page has the contact elsewhere, as its first button. */
  readonly isContactShown?: boolean
}

/**
 * The end of every error page: where users find help, and what to report there, so that the request can be found in the console
 * and the log. The script shows the button.
 */
export function supportBlock(words: Words, { code, requestId, isContactShown = false }: SupportDetails): Html {
  const { rich, t } = words
  return html`<section class="details" aria-label="${t('page.details')}">
${isContactShown ? '' : supportLink(words)}
<div id="details">
<p class="small">${rich('page.code', { code: html`<code>${code}</code>` })}</p>
${requestId === undefined ? '' : html`<p class="small reference">${rich('page.request_id', { id: html`<code>${requestId}</code>` })}</p>`}
</div>
<button type="button" class="plain small" data-copy-of="details" data-copied="${t('page.copied')}" aria-live="polite" hidden>${t('page.copy_details')}</button>
</section>
<script type="module" src="${COPY_SCRIPT}"></script>`
}

/** `isButton`: for a user who needs access, it is the first thing to press. */
function supportLink({ rich, support }: Words, isButton = false): Html | '' {
  if (!support) return ''
  const contact = html`<a ${isButton ? html`class="button"` : ''} href="${support.href}">${support.text}</a>`
  return html`<p class="small support">${rich('page.support', { contact })}</p>`
}

/** The title and the text of a notice, with something else below. */
export function noticeFrame(words: Words, name: NoticeName, rest: Html, text = noticeText(words, name)): string {
  const title = words.t(`notice.${name}.title`)
  return page({
    words,
    title,
    body: html`
<h1>${title}</h1>
<p class="lead">${text}</p>
${rest}`,
  })
}

export function confirmSignOutPage(words: Words): string {
  const { t } = words
  return page({
    words,
    title: t('sign_out.title'),
    body: html`
<h1>${t('sign_out.question')}</h1>
<p class="lead">${t('sign_out.reason')}</p>
<form method="post" action="${words.paths.logout}"><button type="submit" class="button">${t('sign_out.title')}</button></form>
<a class="button quiet" href="/">${t('sign_out.no')}</a>`,
  })
}

// Shown between a sign-in and a host of `hosts`. The script continues immediately.

export function handoffPage(words: Words, host: string, url: string): string {
  const text = words.rich('entering.text', { host: html`<code>${host}</code>` })
  return continuePage(words, words.t('entering.title'), text, url)
}

// For a browser that came from another site, and proves its device only when one of our own pages asks. The script continues
// immediately.

export function deviceProofNotice(words: Words, path: string): string {
  return continuePage(words, words.t('proving.title'), words.t('proving.text'), path)
}

function continuePage(words: Words, title: string, text: Html | string, url: string): string {
  return page({
    words,
    title,
    script: 'enter.js',
    body: html`
<h1>${title}</h1>
<p class="lead">${text}</p>
<a class="button" href="${url}" data-enter>${words.t('login.continue')}</a>`,
  })
}

// For a browser that has sent a form after its session had ended: the input is not lost while the page stays open.

/** `isForm`: reloading the page sends the form again. `stepUp` is where a signed-in user signs in again. */
export function sessionEndedPage(words: Words, isForm: boolean, requestId: string, stepUp?: string): string {
  const { t, paths } = words
  const title = stepUp === undefined ? t('session_ended.title') : t('step_up.title')
  const ended = stepUp === undefined ? t('session_ended.page') : t('step_up.required')
  return page({
    words,
    title,
    isOneLanguage: isForm,
    body: html`
<h1>${title}</h1>
<p class="lead">${isForm ? t('session_ended.form') : ended}</p>
<ol>
<li>${t('session_ended.sign_in')}</li>
<li>${isForm ? t('session_ended.reload_form') : t('session_ended.reload')}</li>
</ol>
<a class="button" href="${stepUp ?? paths.login}" target="_blank" rel="noopener">${t('session.sign_in_again')}</a>
${supportBlock(words, { code: stepUp === undefined ? 'session_ended' : 'step_up', requestId })}`,
  })
}

/** Shown in the new tab, after the sign-in. */
export function stepUpDonePage(words: Words, isForm: boolean): string {
  const { t } = words
  return page({
    words,
    title: t('step_up.done'),
    body: html`
<h1>${t('step_up.done')}</h1>
<p class="lead">${isForm ? t('step_up.return_form') : t('step_up.return')}</p>
<a class="button quiet" href="/">${t('page.home')}</a>`,
  })
}

// For a user whom a rule would admit from another network, at another time, or with another sign-in.

interface ConditionView {
  readonly rule: Rule | undefined
  readonly requestId: string
  /** The signed return path for another sign-in, if that could help. */
  readonly signInAgain: string | undefined
}

/** Names those demands of the rule that are not secret: its hours, and the age of the sign-in, which the provider is asked for. */
export function conditionText(words: Words, name: RefusalCode, { hours, maxAge }: Partial<Rule> = {}): string {
  if (name === 'outside_hours' && hours) return words.t('notice.outside_hours.open', { hours: hoursText(words, hours) })
  if (name === 'step_up_failed' && maxAge !== undefined)
    return words.t('notice.step_up_failed.max_age', { duration: durationText(words, maxAge) })
  return noticeText(words, name)
}

const DURATIONS = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
] as const

/** In the largest unit that gives a whole number. */
function durationText({ lang }: Words, seconds: number): string {
  const [length, unit] = DURATIONS.find(([length]) => seconds % length === 0) ?? [1, 'second']
  const text = new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / length)
  return text.replace(DIGIT_BEFORE_HAN, '$1 ')
}

export function conditionPage(
  words: Words,
  name: RefusalCode,
  { rule, requestId, signInAgain }: ConditionView,
): string {
  const { t, paths } = words
  return noticeFrame(
    words,
    name,
    html`<p class="next">${t(`notice.${name}.remedy`)}</p>
${signInAgain === undefined ? '' : html`<form method="post" action="${paths.login}"><input type="hidden" name="${RETURN_FIELD}" value="${signInAgain}"><button type="submit" class="button">${t('session.sign_in_again')}</button></form>`}
${supportLink(words, signInAgain === undefined)}
<a class="button quiet" href="/">${t('page.home')}</a>
${supportBlock(words, { code: name, requestId, isContactShown: true })}`,
    conditionText(words, name, rule),
  )
}

/** A Sunday, in UTC. */
const SUNDAY = Date.UTC(2023, 0, 1)
const DAY_MS = 86_400_000

/** In the language of the page: the days, the hours and the name of the time zone. */
export function hoursText({ lang, t }: Words, { days = DAYS, from, to, zone }: Hours): string {
  const dayName = new Intl.DateTimeFormat(lang, { weekday: 'long', timeZone: 'UTC' })
  // The week begins on Monday.
  const order = [...DAYS.slice(1), DAYS[0]].filter(day => days.includes(day))
  const names = order.map(day => dayName.format(SUNDAY + DAYS.indexOf(day) * DAY_MS))
  const [first = '', last = ''] = [names[0], names.at(-1)]
  const isRun =
    order.length > 2 && DAYS.indexOf(order.at(-1) ?? 'sun') === (DAYS.indexOf(order[0] ?? 'mon') + order.length - 1) % 7
  const shown = isRun ? t('hours.run', { first, last }) : new Intl.ListFormat(lang).format(names)
  const time = from < to ? t('hours.time', { from, to }) : t('hours.next_day', { from, to })
  return t('hours.all', {
    days: order.length === DAYS.length ? t('hours.every_day') : shown,
    time,
    zone: zoneName(lang, zone),
  })
}

function zoneName(lang: string, zone: string): string {
  const parts = new Intl.DateTimeFormat(lang, { timeZone: zone, timeZoneName: 'longGeneric' }).formatToParts(SUNDAY)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? zone
}

// Shown instead of another login page when the browser did not keep the cookie of the sign-in that it has just completed.

interface LostCookieView {
  /** The address under which signing in works. */
  readonly baseUrl: string
  /** The host that the browser asked for, if it is another one. */
  readonly otherHost: string | undefined
  readonly requestId: string
}

export function lostCookiePage(words: Words, { baseUrl, otherHost, requestId }: LostCookieView): string {
  const secure = baseUrl.startsWith('https:')
  const { t, rich } = words
  return page({
    words,
    title: t('lost_cookie.title'),
    body: html`
<h1>${t('lost_cookie.heading')}</h1>
<p class="lead">${t('lost_cookie.lead')}</p>
<div class="notice warn"><ul>
${otherHost ? html`<li>${rich('lost_cookie.other_host', { host: html`<code>${otherHost}</code>`, base_url: html`<code>${baseUrl}</code>` })}</li>` : ''}
${secure ? html`<li>${t('lost_cookie.plain_http')}</li>` : ''}
<li>${t('lost_cookie.blocked')}</li>
</ul></div>
<p class="next">${t('lost_cookie.next')}</p>
<a class="button" href="${baseUrl}/">${baseUrl}</a>
<p class="hint">${rich('lost_cookie.hint', { setting: html`<code>BASE_URL</code>` })}</p>
${supportBlock(words, { code: 'cookie_lost', requestId })}`,
  })
}

// The page for a signed-in user who is not allowed: who they are signed in as, and how to switch accounts.

/** Field of the form that signs out: where the next sign-in leads. */
export const RETURN_FIELD = 'return'

interface Refusal {
  readonly requestId: string
  /** Where a sign-in with another account leads. */
  readonly wanted: string | undefined
  /** The rule that refused, if it was one. */
  readonly rule?: Rule | undefined
}

export function refusedPage(
  words: Words,
  { userInfo, userRole }: Session,
  { requestId, wanted, rule }: Refusal,
): string {
  const { username } = userInfo
  const { t } = words
  return noticeFrame(
    words,
    'refused',
    html`<p class="next">${t('notice.refused.remedy')}</p>
${supportLink(words, true)}
<dl>
<div><dt>${t('refused.account')}</dt><dd>${nameBefore(displayName(userInfo), username)}<code>${username}</code></dd></div>
<div><dt>${t('session.role')}</dt><dd>${nameBefore(roleName(words, userRole), userRole)}<code>${userRole}</code></dd></div>
${rule ? missingPart(words, rule) : ''}${rule && userRole === CONSOLE_ROLE ? rulePart(words, rule) : ''}</dl>
<form method="post" action="${words.paths.logout}"><button type="submit" class="${words.support ? 'button quiet' : 'button'}">${t('refused.other_account')}</button>${wanted === undefined ? '' : html`<input type="hidden" name="${RETURN_FIELD}" value="${wanted}">`}</form>
<a class="button quiet" href="/">${t('page.home')}</a>
${supportBlock(words, { code: 'refused', requestId, isContactShown: true })}`,
  )
}

/** The kind of permission that would admit the user. Its name is for those who maintain the rules. */
function missingPart({ t, lang }: Words, { roles, groups, users }: Rule): Html {
  const kinds = [
    ...(roles ? [t('refused.role')] : []),
    ...(groups ? [t('refused.group')] : []),
    ...(users ? [t('refused.user')] : []),
  ]
  const any = new Intl.ListFormat(lang, { type: 'disjunction' }).format(kinds)
  return html`<div><dt>${t('refused.missing')}</dt><dd>${t('refused.only', { kinds: any })}</dd></div>`
}

function rulePart({ t }: Words, rule: Rule): Html {
  return html`<div><dt>${t('refused.rule')}</dt><dd><a href="${OWN_PATHS.consoleRules}"><code>${JSON.stringify(rule)}</code></a></dd></div>`
}
