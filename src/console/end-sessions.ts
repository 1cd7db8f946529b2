// Ending a session or all of its user from the console: GET /_menshen/console/sessions/end asks, POST /_menshen/console/end does.

import { html } from 'hono/html'
import { foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../http/answers.ts'
import { type EndedNotice, endedCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { requestFields } from '../observe/observed-request.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { icon } from '../pages/icon.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import { shortKey } from '../session/fields.ts'
import type { ListedSession } from '../session/listing.ts'
import type { Sessions } from '../session/sessions.ts'
import { isRecordKey } from '../session/ticket.ts'
import { isOwnForm } from '../util/fetch-metadata.ts'
import type { ConsoleContext } from './context.ts'
import { consoleFrame, type Viewer, viewerOf } from './frame.ts'

export async function confirmEnd(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const query = new URLSearchParams(request.search)
  const session = await getListed(context.auth.sessions, query.get('session'))
  if (!session) return backToList(context, request, cookies, { ended: 0 })
  const deviceName = await loadDeviceNames()
  const page = confirmEndPage(languageOf(context.pages, request), {
    viewer: viewerOf(caller),
    session,
    deviceName,
    isOwn: session.key === loaded.key,
    all: query.has('all'),
  })
  return pageAnswer(context.pages, page, { cookies })
}

export async function endListedSession(
  context: ConsoleContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, observe } = context
  const { sessions, providers } = auth
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const listed = await getListed(sessions, form.get('session'))
  if (!listed) return backToList(context, request, cookies, { ended: 0 })
  const { key, publicPart } = listed
  const whose = {
    ...requestFields(request),
    session: shortKey(key),
    ...(publicPart && { user: publicPart.username, provider: publicPart.provider ?? providers.main.plan.id }),
    by: 'developer',
    byUser: loaded.session.userInfo.username,
  }
  // Before its session ends, by which the user is known.
  const owner = form.has('all') ? await auth.personalKeys.ownerOfSession(key) : undefined
  const endKeys = async () => {
    const revoked = owner === undefined ? 0 : await auth.personalKeys.endAllOfOwner(owner)
    if (revoked > 0) observe.report('key_revoked', { ...whose, revoked })
  }
  await endKeys()
  const ended = form.has('all') ? (await sessions.endAllLike(key)).count : Number(await sessions.end(key))
  // A session may have made one until it ended.
  await endKeys()
  if (ended > 0) observe.report('session_ended', { ...whose, ended })
  return backToList(context, request, cookies, { ended, ...(publicPart && { user: publicPart.username }) })
}

async function getListed(sessions: Sessions, key: string | null): Promise<ListedSession | undefined> {
  return key && isRecordKey(key) ? sessions.getListed(key) : undefined
}

function backToList(
  context: ConsoleContext,
  request: GatewayRequest,
  cookies: readonly string[],
  ended: EndedNotice,
): OwnAnswer {
  return redirectAnswer(context.pages, request.method, OWN_PATHS.consoleSessions, {
    cookies: [...cookies, endedCookie(context.auth.cookies, ended)],
  })
}

// Asks before a session, or all of its user, is ended.

interface EndConfirmation {
  readonly viewer: Viewer
  readonly session: ListedSession
  readonly deviceName: DeviceNames
  /** The session that looks at the page is among those that would end. */
  readonly isOwn: boolean
  readonly all: boolean
}

export function confirmEndPage(words: Words, { viewer, session, deviceName, isOwn, all }: EndConfirmation): string {
  const { t } = words
  const { key, publicPart } = session
  const user = publicPart?.username ?? t('console.unreadable')
  return consoleFrame(words, {
    section: 'sessions',
    viewer,
    title: all ? t('console.end_all_question', { user }) : t('console.end_question', { user }),
    body: html`<p class="lead">${all ? t('console.end_all_effect') : t('console.end_effect')}</p>
${isOwn ? html`<div class="notice warn"><p>${t('console.end_own')}</p></div>` : ''}
${publicPart && !all ? html`<p>${deviceName(words, publicPart.userAgent)} · ${publicPart.address ?? t('device.address_unknown')} · ${moment(words, publicPart.signedInAt)}</p>` : ''}
<form method="post" action="${OWN_PATHS.endSession}" class="actions"><input type="hidden" name="session" value="${key}">
${all ? html`<input type="hidden" name="all" value="yes">` : ''}
<button type="submit" class="button small danger">${all ? t('console.end_all') : t('console.end')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleSessions}">${t('console.end_no')}</a></form>`,
  })
}

// The buttons that lead to the question whether a session, or all of its user, shall end.

export function endButtons(words: Words, key: string, user: string) {
  return endForm(words, key, user, { form: 'actions', button: 'button small quiet' })
}

/** One menu for all that can be done with a session. It opens without scripts. */
export function sessionMenu(words: Words, key: string, user: string): Html {
  const { t } = words
  return html`<details class="menu" name="menu"><summary aria-label="${t('console.action_label', { user })}" title="${t('console.action')}">${icon('more')}<span class="unseen">${t('console.action')}</span></summary>
<div class="items"><a class="item" href="${OWN_PATHS.consoleSession}?key=${key}" aria-label="${t('console.details_label', { user })}">${t('console.details')}</a>
${endForm(words, key, user, { form: '', button: 'item' })}</div></details>`
}

interface Looks {
  readonly form: string
  readonly button: string
}

function endForm({ t }: Words, key: string, user: string, { form, button }: Looks) {
  return html`<form method="get" action="${OWN_PATHS.consoleConfirmEnd}" class="${form}"><input type="hidden" name="session" value="${key}">
<button type="submit" class="${button}" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="${button}" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}
