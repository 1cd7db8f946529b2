// DEVICE_BOUND_SESSIONS: whether a request comes from the device that its session is bound to (W3C, Device Bound Session
// Credentials). The routes with which a browser binds a session and proves itself are in routes/device.ts.
//
// A session that was bound stays bound: turning the setting off ends the offer to new sessions and nothing else.

import { isSecure } from '../config/read.ts'
import { clearCookie, readCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import {
  type BoundDevice,
  type DeviceBinding,
  isBound,
  mayWait,
  type OfferedDevice,
  offerDevice,
  registrationChallenge,
  seenDevice,
  showsCookie,
} from '../session/device-binding.ts'
import type { DeviceNotes, LoadedSession } from '../session/session-cache.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { GatewayContext } from './context.ts'

export type DeviceContext = Pick<GatewayContext, 'settings' | 'host' | 'now' | 'auth' | 'observe'>
export type DeviceRequest = Pick<GatewayRequest, 'headers' | 'observed'>

// After the sign-in.

export function offersDevices({ settings, host }: Pick<DeviceContext, 'settings' | 'host'>): boolean {
  return settings.DEVICE_BOUND_SESSIONS === 'on' && isSecure(settings) && !host
}

export function offerOf(context: Pick<DeviceContext, 'settings' | 'host'>): OfferedDevice | undefined {
  return offersDevices(context) ? offerDevice() : undefined
}

/** Asks the browser to register a key. Browsers that cannot do that ignore it. */
export function registrationHeader(device: OfferedDevice, ticket: string): Record<string, string> {
  const challenge = registrationChallenge(device, ticket)
  return { 'secure-session-registration': `(ES256);path="${OWN_PATHS.deviceRegister}";challenge="${challenge}"` }
}

export function clearBound(
  { auth }: Pick<DeviceContext, 'auth'>,
  { headers }: Pick<DeviceRequest, 'headers'>,
): string[] {
  const { bound } = auth.cookies
  return readCookie(headers.cookie, bound) === undefined ? [] : [clearCookie(bound)]
}

// At every request.

/** Whether the request shows that it comes from the device, as far as this process knows. */
export function showsDevice(context: DeviceContext, { headers }: DeviceRequest, loaded: LoadedSession): boolean {
  const { device } = loaded.session
  if (!isBound(device) || context.host) return true
  const now = context.now()
  const shown = readCookie(headers.cookie, context.auth.cookies.bound)
  return (shown !== undefined && showsCookie(device, shown, now)) || (!device.isSeen && mayWait(loaded.signedInAt, now))
}

/**
 * The session, if the request comes from the device that it is bound to. The ticket alone counts until the second cookie was
 * seen once, and for ten minutes after the sign-in at most: the first pages are asked for while the browser registers its key.
 */
export function fromItsDevice(
  context: DeviceContext,
  request: DeviceRequest,
  ticket: string,
  loaded: LoadedSession,
): MaybePromise<LoadedSession | undefined> {
  const { device } = loaded.session
  // The ticket of a host counts by itself. Such sessions are not bound as long as there are hosts.
  if (!isBound(device) || context.host) return loaded
  const shown = readCookie(request.headers.cookie, context.auth.cookies.bound)
  if (shown !== undefined && showsCookie(device, shown, context.now())) {
    if (!device.isSeen) noteSeen(context, ticket, loaded)
    return loaded
  }
  if (shown === undefined && device.isSeen) return reportMissing(context, request, loaded)
  return lookAgain(context, request, ticket, shown, loaded)
}

/** Whether the browser has a session that counts again when it proves its device. */
export async function couldProve(context: DeviceContext, request: DeviceRequest): Promise<boolean> {
  const { auth, host } = context
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  if (ticket === undefined || host) return false
  // The login page works without the store.
  const loaded = await auth.sessions.get(ticket).catch(() => undefined)
  return loaded !== undefined && !showsDevice(context, request, loaded)
}

/** Another process may have given the browser a newer cookie, or have seen it. */
async function lookAgain(
  context: DeviceContext,
  request: DeviceRequest,
  ticket: string,
  shown: string | undefined,
  known: LoadedSession,
): Promise<LoadedSession | undefined> {
  const { sessions } = context.auth
  const loaded = await sessions.reload(ticket)
  const device = loaded?.session.device
  if (!loaded || !isBound(device)) return loaded
  loaded.deviceNotes = known.deviceNotes
  const now = context.now()
  if (shown !== undefined && showsCookie(device, shown, now)) {
    if (!device.isSeen) noteSeen(context, ticket, loaded)
    return loaded
  }
  if (device.isSeen) return reportMissing(context, request, loaded)
  if (mayWait(loaded.signedInAt, now)) return loaded
  // If it has changed since it was read, it is looked at again.
  return (await sessions.endUnbound(loaded)) ? undefined : lookAgain(context, request, ticket, shown, loaded)
}

/** One write in the life of a session. No request waits for it; if it fails, the next request tries again. */
function noteSeen({ auth }: DeviceContext, ticket: string, loaded: LoadedSession): void {
  const notes = notesOf(loaded)
  if (notes.isSeen) return
  notes.isSeen = true
  auth.sessions.changeDevice(ticket, loaded, asSeen).catch(() => {
    notes.isSeen = false
  })
}

function asSeen(device: DeviceBinding | undefined): BoundDevice | undefined {
  return isBound(device) && !device.isSeen ? seenDevice(device) : undefined
}

const REPORTED_EVERY_MS = 60_000

function reportMissing({ now, observe }: DeviceContext, request: DeviceRequest, loaded: LoadedSession): undefined {
  const notes = notesOf(loaded)
  const at = now()
  if (notes.reportedAt !== undefined && at - notes.reportedAt < REPORTED_EVERY_MS) return
  notes.reportedAt = at
  observe.report('device_missing', requestFields(request, loaded))
}

function notesOf(loaded: LoadedSession): DeviceNotes {
  loaded.deviceNotes ??= {}
  return loaded.deviceNotes
}
