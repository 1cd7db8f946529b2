// GET /_menshen/account: the user's profile, their devices, and recent sign-ins.

import {
  foreignAnswer,
  ifStoreAvailable,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  redirectAnswer,
} from '../http/answers.ts'
import { clearCookie, endedCookie, readEnded } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { type KeyRequest, MAX_KEY_NAME_LENGTH } from '../keys/personal.ts'
import { requestFields } from '../observe/observed-request.ts'
import { type DeviceNames, deviceKind, loadDeviceNames } from '../pages/device-name.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'
import type { LoadedSession } from '../session/cache.ts'
import { shortKey } from '../session/fields.ts'
import { userIdOf } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import { isRecordKey } from '../session/ticket.ts'
import { isOwnForm } from '../util/fetch-metadata.ts'
import type { AccountContext } from './context.ts'
import type { KeysView } from './key-section.ts'
import { type AccountView, accountPage, type Device, sessionEnds } from './page.ts'

const MAX_DEVICES = 50
/** A user with more sessions has a program that signs in. */
const MAX_SESSIONS_READ = 200

export function showAccount(
  context: AccountContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const draft = readDraft(new URLSearchParams(request.search), context.settings.PERSONAL_KEY_MAX_DAYS)
  return accountAnswer(context, request, caller, { draft })
}

/** The account page, with the draft of a new key and its problem, if there is one. */
export async function accountAnswer(
  context: AccountContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  { problem, draft }: Pick<KeysView, 'problem' | 'draft'>,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  const words = languageOf(pages, request)
  const names = await loadDeviceNames()
  const nameOf = (userAgent: string | undefined) => names(words, userAgent)
  const hasKeys = hasPersonalKeys(context)
  const [listed, others, signIns, keys] = await Promise.all([
    ifStoreAvailable(observe.report, request, auth.sessions.getListed(loaded.key)),
    ifStoreAvailable(observe.report, request, otherDevices(auth.sessions, loaded, nameOf)),
    ifStoreAvailable(observe.report, request, recentSignIns(context, loaded, nameOf)),
    hasKeys
      ? ifStoreAvailable(observe.report, request, auth.personalKeys.listOf(userIdOf(loaded.session)))
      : Promise.resolve(undefined),
  ])
  const ended = readEnded(auth.cookies, request.headers.cookie)
  const page = accountPage(words, loaded, {
    now: context.now(),
    providerName: providerNameOf(words, auth.providers, loaded),
    ends: sessionEnds(loaded, settings.SESSION_MAX_HOURS, auth.sessions.idleEndOf(loaded)),
    own: deviceOf({ ...loaded, ...listed?.summary }, nameOf),
    others,
    signIns,
    ended: ended?.ended,
    hasPortal: context.applications.length > 0,
    keys: hasKeys ? { keys, problem, draft, maxDays: settings.PERSONAL_KEY_MAX_DAYS } : undefined,
  })
  return pageAnswer(pages, page, {
    status: problem ? 400 : 200,
    cookies: ended ? [...cookies, clearCookie(auth.cookies.ended)] : cookies,
  })
}

/** Letters, digits, signs and spaces of any script; nothing that is invisible or changes the direction of a text. */
const NAME = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u

/** Reads the valid fields of the form for a new key, or of the address to which a sign-in for it returns. */
export function readDraft(fields: URLSearchParams, maxDays: number): Partial<KeyRequest> {
  const name = (fields.get('name') ?? '').trim()
  const days = fields.get('days') ?? ''
  const hasName = NAME.test(name) && [...name].length <= MAX_KEY_NAME_LENGTH
  const hasDays = /^\d{1,4}$/.test(days) && Number(days) >= 1 && Number(days) <= maxDays
  return { ...(hasName && { name }), ...(hasDays && { days: Number(days) }) }
}

/** The opposite of `readDraft`. */
export function draftQuery({ name, days }: KeyRequest): string {
  return `?${new URLSearchParams({ name, days: String(days) })}`
}

/** Whether users can have personal keys. */
export function hasPersonalKeys({ auth, hostRules }: AccountContext): boolean {
  return [auth.rules, ...hostRules.values()].some(rules => rules.hasPersonalKeys)
}

async function otherDevices(
  sessions: Sessions,
  { key, session }: LoadedSession,
  nameOf: NameOf,
): Promise<AccountView['others']> {
  const { sessions: found, next } = await sessions.listOf(userIdOf(session), { limit: MAX_SESSIONS_READ })
  const others = found.filter(other => other.key !== key)
  const devices = others
    .slice(0, MAX_DEVICES)
    .map(({ key, summary }) => deviceOf(summary ? { key, ...summary } : { key }, nameOf))
  return { devices, areMore: next !== undefined || others.length > devices.length }
}

type NameOf = (userAgent: string | undefined) => ReturnType<DeviceNames>

function deviceOf(
  { key, userAgent, address, signedInAt, seenAt }: Omit<Device, 'name' | 'kind'> & { readonly userAgent?: string },
  nameOf: NameOf,
): Device {
  return {
    key,
    kind: deviceKind(userAgent),
    name: nameOf(userAgent),
    ...(address !== undefined && { address }),
    ...(signedInAt !== undefined && { signedInAt }),
    ...(seenAt !== undefined && { seenAt }),
  }
}

/** The provider's name if there are several. */
export function providerNameOf(words: Words, { names }: Providers, { session }: LoadedSession): string | undefined {
  const name = names?.get(session.provider ?? '')
  return name && words.render(name)
}

// POST /_menshen/account/end: a user ends the session of another device, or of all others; never that of another user.

export async function endDevices(
  context: AccountContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  const { sessions } = auth
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const key = form.get('session') ?? ''
  const ended = form.has('others') ? await endOthers(sessions, loaded) : await endOne(sessions, loaded, key)
  // The user is the one of this request; the session is another one.
  const whose = requestFields(request, { user: loaded.user })
  if (ended > 0)
    observe.report('session_ended', {
      ...whose,
      ...(form.has('others') ? {} : { session: shortKey(key) }),
      by: 'user',
      ended,
    })
  // The same answer whether there is no such session or it is another user's.
  return redirectAnswer(pages, request.method, OWN_PATHS.account, {
    cookies: [...cookies, endedCookie(auth.cookies, { ended })],
  })
}

async function endOthers(sessions: Sessions, loaded: LoadedSession): Promise<number> {
  return (await sessions.endOthersOf(userIdOf(loaded.session), loaded.key)).count
}

/** Not the session of this browser, which ends by signing out. */
async function endOne(sessions: Sessions, loaded: LoadedSession, key: string): Promise<number> {
  const isOther = isRecordKey(key) && key !== loaded.key
  return isOther ? Number(await sessions.endOneOf(userIdOf(loaded.session), key)) : 0
}

// The last sign-ins of a user in the audit trail, and which of them came from a new device.

export interface RecentSignIn {
  readonly time: number
  readonly device: string
  readonly address: string | undefined
  /** Whether no earlier known sign-in came from this device and this address. */
  readonly isNew: boolean
}

const MAX_SHOWN_SIGN_INS = 10
/** How many sign-ins are compared. */
const MAX_COMPARED_SIGN_INS = 50
/** Users of other providers may have the same `sub`: their events are skipped. */
const MAX_AUDIT_PAGES = 4

export async function recentSignIns(
  { auth, observe }: AccountContext,
  { session }: LoadedSession,
  nameOf: (userAgent: string | undefined) => string,
): Promise<RecentSignIn[]> {
  const query = { event: 'sign_in', sub: session.userInfo.sub, limit: MAX_COMPARED_SIGN_INS }
  const provider = auth.providers.get(session.provider)?.plan.id
  const found: Omit<RecentSignIn, 'isNew'>[] = []
  let before: string | undefined
  for (let n = 0; n < MAX_AUDIT_PAGES && found.length < MAX_COMPARED_SIGN_INS; n++) {
    const page = await observe.auditTrail.find(before === undefined ? query : { ...query, before })
    for (const { time, fields } of page.events)
      if (fields.provider === provider)
        found.push({ time, device: nameOf(textOf(fields.userAgent)), address: textOf(fields.address) })
    before = page.next
    if (before === undefined) break
  }
  const marked = found.map((one, n) => ({ ...one, isNew: isNew(one, found.slice(n + 1)) }))
  return marked.slice(0, MAX_SHOWN_SIGN_INS)
}

/** The very first sign-in does not have a new device. */
function isNew(
  { device, address }: Omit<RecentSignIn, 'isNew'>,
  earlier: readonly Omit<RecentSignIn, 'isNew'>[],
): boolean {
  return earlier.length > 0 && !earlier.some(other => other.device === device && other.address === address)
}

function textOf(fact: unknown): string | undefined {
  return typeof fact === 'string' ? fact : undefined
}
