// Pages that only say something: not found, refused, out of order, do you really want to sign out.

import { html } from 'hono/html'
import { OWN_PATHS } from '../own-paths.ts'
import { assetUrl } from './asset-files.ts'
import { type Html, page } from './layout.ts'
import type { Words } from './words/words.ts'

/** Their sentences are `notice.<name>.title`, `.text` and `.remedy`. */
export const NOTICES = {
  trial_done: { status: 200 },
  bad_request: { status: 400 },
  refused: { status: 403 },
  foreign: { status: 403 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  too_large: { status: 413 },
  uri_too_long: { status: 414 },
  too_many: { status: 429 },
  broken: { status: 500 },
  bad_gateway: { status: 502 },
  busy: { status: 503 },
  gateway_timeout: { status: 504 },
  unavailable: { status: 503 },
} as const

export type NoticeName = keyof typeof NOTICES

interface Circumstances {
  /** Where there is something to try again, a path of our own leads there. */
  readonly retryPath?: string | undefined
  /** Said to somebody who is signed in, and need not wonder whether that is why. */
  readonly isUser?: boolean | undefined
  /** What the user can read out to whoever looks into it. */
  readonly requestId?: string
}

export function noticeText({ t }: Words, name: NoticeName, isUser = false): string {
  const text = t(`notice.${name}.text`)
  return isUser ? t('notice.signed_in', { text }) : text
}

export function noticePage(
  words: Words,
  name: NoticeName,
  { retryPath, isUser, requestId }: Circumstances = {},
): string {
  const { t } = words
  return noticeFrame(
    words,
    name,
    html`<p class="hint">${t(`notice.${name}.remedy`)}</p>
${retryPath === undefined ? '' : html`<a class="button" href="${retryPath}">${t('notice.retry')}</a>`}
<a class="button quiet" href="/">${t('page.home')}</a>
${requestId === undefined ? '' : reference(words, requestId)}`,
    noticeText(words, name, isUser),
  )
}

const COPY_SCRIPT = assetUrl('copy.js')

/** By which the console and the log find everything about a request. The script shows the button. */
export function reference({ rich, t }: Words, requestId: string): Html {
  return html`<p class="small reference"><span>${rich('page.request_id', { id: html`<code>${requestId}</code>` })}</span>
<button type="button" class="plain" data-copy="${requestId}" data-copied="${t('page.copied')}" aria-live="polite" hidden>${t('page.copy')}</button></p>
<script type="module" src="${COPY_SCRIPT}"></script>`
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
<form method="post" action="${OWN_PATHS.logout}"><button type="submit" class="button">${t('sign_out.title')}</button></form>
<a class="button quiet" href="/">${t('sign_out.no')}</a>`,
  })
}
