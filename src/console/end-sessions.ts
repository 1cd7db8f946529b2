// Ending sessions from the console: GET /_menshen/console/sessions/end lists them and asks, POST /_menshen/console/end does it.
//
//   session=K   one session
//   user=K      all sessions and personal keys of the user of session K
//   all         every `session` means its user
//   owner=L     all sessions and personal keys of the user with the label L
//
// All but `all` can be given several times. The form of the question has both the session and the label of each user: the session
// may end before the answer, and the user's other sessions and keys must not stay.

import { html } from 'hono/html'
import { foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../http/answers.ts'
import { type EndedNotice, endedCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { ownerKeyOf } from '../keys/owners.ts'
import type { PersonalKeys } from '../keys/personal.ts'
import { requestFields } from '../observe/observed-request.ts'
import { type DeviceNames, loadDeviceNames } from '../pages/device-name.ts'
import { deviceIcon, icon } from '../pages/icon.ts'
import { type Html, moment } from '../pages/layout.ts'
import { displayName, nameBefore } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import { shortKey } from '../session/fields.ts'
import type { ListedSession } from '../session/listing.ts'
import type { Sessions } from '../session/sessions.ts'
import { isRecordKey } from '../session/ticket.ts'
import { isOwnForm } from '../util/fetch-metadata.ts'
import { safeText } from '../util/safe-text.ts'
import type { ConsoleContext } from './context.ts'
import { userIdOf } from './find-users.ts'
import { consoleFrame, type Viewer, viewerOf } from './frame.ts'

/** What ends together: one session, or all sessions of its user. */
interface Choice {
  readonly session: ListedSession
  readonly all: boolean
}

/** Their names fit on a page and into an address. */
const MAX_CHOSEN = 100

/** The sessions that exist, each once. If all sessions of a user are chosen, a single one is not listed again. */
async function choicesIn(sessions: Sessions, fields: URLSearchParams): Promise<Choice[] | 'too many'> {
  const [ofUsers, single, owners = new Set<string>()] = ['user', 'session', 'owner'].map(
    name => new Set(fields.getAll(name).filter(isRecordKey)),
  )
  const wholeKeys = new Set([...(ofUsers ?? []), ...(fields.has('all') ? (single ?? []) : [])])
  const singleKeys = fields.has('all') ? new Set<string>() : (single ?? new Set<string>())
  if (Math.max(wholeKeys.size, owners.size) + singleKeys.size > MAX_CHOSEN) return 'too many'
  const listed = async (keys: ReadonlySet<string>) =>
    (await Promise.all([...keys].map(key => sessions.getListed(key)))).filter(session => session !== undefined)
  const [whole, alone] = await Promise.all([listed(wholeKeys), listed(singleKeys)])
  const byUser = new Map(whole.map(session => [userIdOf(session), session]))
  const others = [...owners].filter(owner => !byUser.has(owner))
  for (const session of await Promise.all(others.map(owner => anySessionOf(sessions, owner))))
    byUser.set(userIdOf(session), session)
  return [
    ...[...byUser.values()].map(session => ({ session, all: true })),
    ...alone.filter(session => !byUser.has(userIdOf(session))).map(session => ({ session, all: false })),
  ]
}

/** A user without any session may still have keys. */
async function anySessionOf(sessions: Sessions, owner: string): Promise<ListedSession> {
  const none = { key: '', expiresAt: 0, owner }
  const { sessions: found } = await sessions.listLike(none, { limit: 1 })
  return found[0] ?? none
}

export async function confirmEnd(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, cookies } = caller
  const { sessions } = context.auth
  const fields = new URLSearchParams(request.search)
  const words = languageOf(context.pages, request)
  const choices = await choicesIn(sessions, fields)
  if (choices === 'too many')
    return pageAnswer(context.pages, tooManyPage(words, viewerOf(caller)), { status: 400, cookies })
  if (choices.length === 0) {
    const isNothingChosen = !fields.has('session') && !fields.has('user')
    return isNothingChosen
      ? redirectAnswer(context.pages, request.method, OWN_PATHS.consoleSessions, { cookies })
      : backToList(context, request, cookies, { ended: 0 })
  }
  const own = await sessions.getListed(loaded.key)
  const page = confirmEndPage(words, {
    viewer: viewerOf(caller),
    choices,
    deviceName: await loadDeviceNames(),
    isOwn: choices.some(({ session, all }) =>
      all && own ? userIdOf(session) === userIdOf(own) : session.key === loaded.key,
    ),
  })
  return pageAnswer(context.pages, page, { cookies })
}

export async function endListedSession(
  context: ConsoleContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages } = context
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const choices = await choicesIn(auth.sessions, form)
  if (choices === 'too many') return redirectAnswer(pages, request.method, OWN_PATHS.consoleSessions, { cookies })
  const byUser = loaded.session.userInfo.username
  let ended = 0
  // One after another: a hundred at the same time would be a burst on the store.
  for (const choice of choices) ended += await endChoice(context, request, choice, byUser)
  const users = new Map(choices.map(({ session }) => [userIdOf(session), session.summary?.username]))
  const [user] = users.values()
  return backToList(context, request, cookies, {
    ended,
    ...(users.size > 1 ? { users: users.size } : user !== undefined && { user }),
  })
}

/** Returns how many sessions it ended. */
async function endChoice(
  { auth, observe }: ConsoleContext,
  request: GatewayRequest,
  { session, all }: Choice,
  byUser: string,
): Promise<number> {
  const { key, summary } = session
  const { sessions, providers, personalKeys } = auth
  const owner = all && session.owner !== undefined ? ownerKeyOf(session.owner) : undefined
  const user = summary ?? (owner === undefined ? undefined : await userWithKeys(personalKeys, owner))
  const whose = {
    ...requestFields(request),
    ...(key !== '' && { session: shortKey(key) }),
    ...(user && { user: user.username, provider: user.provider ?? providers.main.plan.id }),
    by: 'developer',
    byUser,
  }
  const endKeys = async () => {
    const revoked = owner === undefined ? 0 : await personalKeys.endAllOfOwner(owner)
    if (revoked > 0) observe.report('key_revoked', { ...whose, revoked })
  }
  await endKeys()
  const ended = all ? (await sessions.endAllLike(session)).count : Number(await sessions.end(key))
  // A session may have created a key until it ended.
  await endKeys()
  if (ended > 0) observe.report('session_ended', { ...whose, ended })
  return ended
}

/** A user without a session, whom one of their keys names for the audit trail. */
async function userWithKeys(
  personalKeys: PersonalKeys,
  owner: string,
): Promise<{ username: string; provider: string | undefined } | undefined> {
  const [key] = await personalKeys.listOfOwner(owner)
  const found = key && (await personalKeys.find(key.id))
  return found && { username: found.user.userInfo.username, provider: found.user.provider }
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

// The question before anything ends, with all that would end.

interface EndConfirmation {
  readonly viewer: Viewer
  /** At least one. */
  readonly choices: readonly Choice[]
  readonly deviceName: DeviceNames
  /** Whether the viewer's own session is among those that would end. */
  readonly isOwn: boolean
}

export function confirmEndPage(words: Words, { viewer, choices, deviceName, isOwn }: EndConfirmation): string {
  const { t } = words
  const [first] = choices
  const isAll = choices.every(({ all }) => all)
  const { username } = first?.session.summary ?? {}
  const user = username === undefined ? t('console.unreadable') : safeText(username)
  const question = isAll ? t('console.end_all_question', { user }) : t('console.end_question', { user })
  const effect = isAll ? t('console.end_all_effect') : t('console.end_effect')
  const isOne = choices.length === 1
  const fields = choices.map(
    ({
      session: { key, owner },
      all,
    }) => html`<input type="hidden" name="${all && !isOne ? 'user' : 'session'}" value="${key}">${all && owner !== undefined ? html`<input type="hidden" name="owner" value="${owner}">` : ''}
`,
  )
  return consoleFrame(words, {
    section: 'sessions',
    viewer,
    title: isOne ? question : t('console.end_several_question', { count: choices.length }),
    body: html`<p class="lead">${isOne ? effect : t('console.end_several_effect')}</p>
${isOwn ? html`<div class="notice warn"><p>${t('console.end_own')}</p></div>` : ''}
<ul class="choices">${choices.map(choice => html`<li>${choiceLine(words, choice, deviceName)}</li>`)}</ul>
<form method="post" action="${OWN_PATHS.endSession}" class="actions">${fields}${isOne && isAll ? html`<input type="hidden" name="all" value="yes">` : ''}
<button type="submit" class="button small danger">${isOne ? (isAll ? t('console.end_all') : t('console.end')) : t('console.end_chosen')}</button>
<a class="button small quiet" href="${OWN_PATHS.consoleSessions}">${t('console.end_no')}</a></form>`,
  })
}

function choiceLine(words: Words, { session: { key, summary }, all }: Choice, deviceName: DeviceNames): Html {
  const { t } = words
  if (!summary) return html`${t('console.unreadable')} <code>${shortKey(key)}</code>`
  const { username, userAgent, address, signedInAt } = summary
  const name = nameBefore(displayName(summary), username).trim()
  const who = html`${icon('person')} ${name === '' ? '' : html`<bdi>${name}</bdi> `}<code>${safeText(username)}</code>`
  if (all) return html`${who}<br><span class="dim">${t('console.all_of_user')}</span>`
  return html`${who}<br><span class="dim">${deviceIcon(userAgent)} ${deviceName(words, userAgent)} · ${address ?? t('device.address_unknown')} · ${moment(words, signedInAt)}</span>`
}

function tooManyPage(words: Words, viewer: Viewer): string {
  const { t } = words
  return consoleFrame(words, {
    section: 'sessions',
    viewer,
    body: html`<div class="notice bad" role="alert"><p>${t('console.too_many_chosen', { count: MAX_CHOSEN })}</p></div>
<p><a href="${OWN_PATHS.consoleSessions}">${t('console.back_to_list')}</a></p>`,
  })
}

// The buttons that lead to the question.

/** On the page of one session: the buttons that end it. */
export function endButtons({ t }: Words, key: string, user: string): Html {
  return html`<form method="get" action="${OWN_PATHS.consoleConfirmEnd}" class="actions"><input type="hidden" name="session" value="${key}">
<button type="submit" class="button small quiet" aria-label="${t('console.end_label', { user })}">${t('console.end')}</button>
<button type="submit" name="all" value="yes" class="button small quiet" aria-label="${t('console.end_all_label', { user })}">${t('console.end_all')}</button></form>`
}

/** In the list: all actions for one session. It opens without scripts. */
export function sessionMenu({ t }: Words, { key }: ListedSession, session: string): Html {
  return html`<details class="menu" name="menu"><summary aria-label="${t('console.action_label', { user: session })}" title="${t('console.action')}">${icon('more')}<span class="unseen">${t('console.action')}</span></summary>
<div class="items"><a class="item" href="${OWN_PATHS.consoleSession}?key=${key}" aria-label="${t('console.details_label', { user: session })}">${t('console.details')}</a>
<a class="item" href="${OWN_PATHS.consoleConfirmEnd}?session=${key}" aria-label="${t('console.end_label', { user: session })}">${t('console.end')}</a></div></details>`
}

/** In the list: ends all sessions of a user. */
export function endAllButton({ t }: Words, key: string, user: string): Html {
  return html`<form method="get" action="${OWN_PATHS.consoleConfirmEnd}"><button type="submit" name="user" value="${key}" class="button small quiet" aria-label="${t('console.end_all_short_label', { user })}">${t('console.end_all_short')}</button></form>`
}
