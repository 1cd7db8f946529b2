// GET /_menshen/account: who is signed in, on which devices, and how they got there.

import { errorFields, MenshenError } from '../../errors.ts'
import { type AccountView, accountPage, type Device } from '../../pages/account-page.ts'
import { type DeviceNames, deviceKind, loadDeviceNames } from '../../pages/device-name.ts'
import { OWN_PATHS } from '../../paths.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import { shortKey } from '../../session/session-facts.ts'
import { userIdOf } from '../../session/session-record.ts'
import type { SignedInCaller } from '../admission.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, endedCookie, readEnded } from '../cookies.ts'
import { languageOf } from '../language.ts'
import { type GatewayRequest, isFromOwnOrigin, requestFields } from '../request.ts'
import { foreignAnswer, pageAnswer, redirectAnswer } from '../respond.ts'

const MOST_DEVICES = 50
/** Somebody with more has a program that signs in. */
const MOST_READ = 200

export async function showAccount(
  context: GatewayContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
): Promise<Response> {
  const words = languageOf(context, request)
  const names = await loadDeviceNames()
  const nameOf = (userAgent: string | undefined) => names(words, userAgent)
  const [listed, others, signIns] = await Promise.all([
    ifReachable(context, request, context.sessions.getListed(loaded.key)),
    ifReachable(context, request, otherDevices(context, loaded, nameOf)),
    ifReachable(context, request, recentSignIns(context, loaded, nameOf)),
  ])
  const ended = readEnded(context.cookies, request.headers.cookie)
  const page = accountPage(words, loaded, {
    providerName: providerNameOf(context, loaded),
    own: deviceOf({ ...loaded, ...listed?.publicPart }, nameOf),
    others,
    signIns,
    ended: ended?.ended,
  })
  return pageAnswer(context, page, { cookies: ended ? [...cookies, clearCookie(context.cookies.ended)] : cookies })
}

async function otherDevices(
  { sessions }: Pick<GatewayContext, 'sessions'>,
  { key, session }: LoadedSession,
  nameOf: NameOf,
): Promise<AccountView['others']> {
  const { sessions: found, next } = await sessions.listOf(userIdOf(session), { limit: MOST_READ })
  const others = found.filter(other => other.key !== key)
  const devices = others
    .slice(0, MOST_DEVICES)
    .map(({ key, publicPart }) => deviceOf(publicPart ? { key, ...publicPart } : { key }, nameOf))
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

/** Where there are several. */
export function providerNameOf(
  { providers }: Pick<GatewayContext, 'providers'>,
  { session }: LoadedSession,
): string | undefined {
  return providers.names?.get(session.provider ?? '')
}

// POST /_menshen/account/end: a user ends another device of their own, or all others. Nobody else's session can be meant.

export async function endDevices(
  context: GatewayContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  const { settings, report } = context
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const key = form.get('session') ?? ''
  const ended = form.has('others') ? await endOthers(context, loaded) : await endOne(context, loaded, key)
  // Whose they were is the user; which one it was is not the session that asks.
  const whose = requestFields(context, request, { session: loaded.session })
  if (ended > 0)
    report('session_ended', { ...whose, ...(form.has('others') ? {} : { session: shortKey(key) }), by: 'user', ended })
  // The same whether there was no such session or it is somebody else's.
  return redirectAnswer(context, request.method, OWN_PATHS.account, [
    ...cookies,
    endedCookie(context.cookies, { ended }),
  ])
}

async function endOthers({ sessions }: Pick<GatewayContext, 'sessions'>, loaded: LoadedSession): Promise<number> {
  return (await sessions.endOthersOf(userIdOf(loaded.session), loaded.key)).count
}

/** This very session ends by signing out. */
async function endOne(
  { sessions }: Pick<GatewayContext, 'sessions'>,
  loaded: LoadedSession,
  key: string,
): Promise<number> {
  const isOther = /^[\w-]{43}$/.test(key) && key !== loaded.key
  return isOther ? Number(await sessions.endOneOf(userIdOf(loaded.session), key)) : 0
}

// The last sign-ins of one person, as the audit trail tells them, and which of them came from a device that was new.

export interface RecentSignIn {
  readonly time: number
  readonly device: string
  readonly address: string | undefined
  /** No earlier one that is known came from this device and this address. */
  readonly isNew: boolean
}

const SHOWN = 10
/** So many are compared. */
const COMPARED = 50
/** Others may have the same `sub` at another provider: theirs are passed over. */
const MOST_PAGES = 4

export async function recentSignIns(
  { auditTrail, providers }: Pick<GatewayContext, 'auditTrail' | 'providers'>,
  { session }: LoadedSession,
  nameOf: (userAgent: string | undefined) => string,
): Promise<RecentSignIn[]> {
  const query = { event: 'sign_in', sub: session.userInfo.sub, limit: COMPARED }
  const provider = providers.get(session.provider)?.plan.id
  const found: Omit<RecentSignIn, 'isNew'>[] = []
  let before: string | undefined
  for (let n = 0; n < MOST_PAGES && found.length < COMPARED; n++) {
    const page = await auditTrail.find(before === undefined ? query : { ...query, before })
    for (const { time, facts } of page.events)
      if (facts.provider === provider)
        found.push({ time, device: nameOf(textOf(facts.userAgent)), address: textOf(facts.address) })
    before = page.next
    if (before === undefined) break
  }
  const marked = found.map((one, n) => ({ ...one, isNew: isNew(one, found.slice(n + 1)) }))
  return marked.slice(0, SHOWN)
}

/** The first of all is nobody's new device. */
function isNew(
  { device, address }: Omit<RecentSignIn, 'isNew'>,
  earlier: readonly Omit<RecentSignIn, 'isNew'>[],
): boolean {
  return earlier.length > 0 && !earlier.some(other => other.device === device && other.address === address)
}

function textOf(fact: unknown): string | undefined {
  return typeof fact === 'string' ? fact : undefined
}

// For pages that have something to say even while the store is away.

/** What was asked of the store; `undefined`, and a line in the log, if it is away. */
export async function ifReachable<T>(
  context: Pick<GatewayContext, 'settings' | 'report'>,
  request: GatewayRequest,
  asked: Promise<T>,
): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'store_unavailable') throw error
    const { method, path } = request
    context.report('request_failed', { ...errorFields(error), ...requestFields(context, request), method, path })
    return undefined
  }
}
