// GET /_menshen/account: who is signed in, on which devices, and how they got there.
import { type AccountView, accountPage, type Device } from '../../pages/account-page.ts'
import { type DeviceNames, deviceKind, loadDeviceNames } from '../../pages/device-name.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import { userIdOf } from '../../session/session-record.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie } from '../http/cookies.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { readEnded } from '../people/ended-cookie.ts'
import { ifReachable } from '../people/if-reachable.ts'
import { recentSignIns } from '../people/recent-sign-ins.ts'

const MOST_DEVICES = 50
/** Somebody with more has a program that signs in. */
const MOST_READ = 200

export async function showAccount(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
): Promise<Response> {
  const words = languageOf(context, visit)
  const names = await loadDeviceNames()
  const nameOf = (userAgent: string | undefined) => names(words, userAgent)
  const [listed, others, signIns] = await Promise.all([
    ifReachable(context, visit, context.sessions.getListed(loaded.key)),
    ifReachable(context, visit, otherDevices(context, loaded, nameOf)),
    ifReachable(context, visit, recentSignIns(context, loaded, nameOf)),
  ])
  const ended = readEnded(context.cookies, visit.headers.cookie)
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
