// DEVICE_BOUND_SESSIONS: whether a request comes from the device that its session is bound to (W3C, Device Bound Session
// Credentials). The routes with which a browser binds a session and proves itself are in routes.ts.
//
// A bound session stays bound: turning the setting off only stops the offer to new sessions.

import { isSecure } from '../config/read.ts'
import type { Settings } from '../config/settings.ts'
import type { Report } from '../events.ts'
import type { CookieNames } from '../http/cookies.ts'
import { clearCookie, readCookie } from '../http/cookies.ts'
import type { CredentialRequest, DeviceCheck } from '../identify/context.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import type { DeviceNotes, LoadedSession } from '../session/cache.ts'
import type { Sessions } from '../session/sessions.ts'
import { isFromOtherSite } from '../util/fetch-metadata.ts'
import {
  type BoundDevice,
  type DeviceBinding,
  isBound,
  mayWait,
  offerDevice,
  registrationChallenge,
  seenDevice,
  showsCookie,
} from './binding.ts'

export interface DevicesOptions {
  readonly settings: Settings
  /** False at a host of `hosts`, where the ticket of the host is enough: no new session is bound as long as there are hosts. */
  readonly isAuthHost: boolean
  readonly cookies: CookieNames
  readonly sessions: Sessions
  readonly now: () => number
  readonly report: Report
}

/** Whether new sessions are offered a binding. */
export function offersDevices(settings: Settings): boolean {
  return settings.DEVICE_BOUND_SESSIONS === 'on' && isSecure(settings)
}

export function createDevices(options: DevicesOptions): DeviceCheck {
  const { settings, isAuthHost, cookies, sessions, now, report } = options

  function isShown({ headers }: CredentialRequest, loaded: LoadedSession): boolean {
    const { device } = loaded.session
    if (!isBound(device) || !isAuthHost) return true
    const at = now()
    const shown = readCookie(headers.cookie, cookies.bound)
    return (shown !== undefined && showsCookie(device, shown, at)) || (!device.isSeen && mayWait(loaded.signedInAt, at))
  }

  /** Another process may have given the browser a newer cookie, or have seen it. */
  async function checkReloaded(
    request: CredentialRequest,
    ticket: string,
    shown: string | undefined,
    known: LoadedSession,
  ): Promise<LoadedSession | undefined> {
    const loaded = await sessions.loadLatest(ticket)
    const device = loaded?.session.device
    if (!loaded || !isBound(device)) return loaded
    loaded.deviceNotes = known.deviceNotes
    const at = now()
    if (shown !== undefined && showsCookie(device, shown, at)) {
      if (!device.isSeen) noteSeen(ticket, loaded)
      return loaded
    }
    if (device.isSeen) return reportMissing(request, loaded)
    if (mayWait(loaded.signedInAt, at)) return loaded
    // A browser does not prove itself for a link on another site. The login page leads to a request for which it does.
    if (isFromOtherSite(request)) return reportMissing(request, loaded)
    // If it has changed since it was read, it is checked again.
    return (await sessions.endUnbound(loaded)) ? undefined : checkReloaded(request, ticket, shown, loaded)
  }

  /** Writes once per session. No request waits for it; if it fails, the next request tries again. */
  function noteSeen(ticket: string, loaded: LoadedSession): void {
    const notes = notesOf(loaded)
    if (notes.isSeen) return
    notes.isSeen = true
    sessions.changeDevice(ticket, loaded, asSeen).catch(() => {
      notes.isSeen = false
    })
  }

  function reportMissing(request: CredentialRequest, loaded: LoadedSession): undefined {
    const notes = notesOf(loaded)
    const at = now()
    if (notes.reportedAt !== undefined && at - notes.reportedAt < REPORT_INTERVAL_MS) return
    notes.reportedAt = at
    report('device_missing', requestFields(request, loaded))
  }

  return {
    isFromDevice: isShown,

    /**
     * The ticket is enough until the second cookie has been seen once, but at most for ten minutes after the sign-in: the first
     * pages are requested while the browser registers its key.
     */
    check(request, ticket, loaded) {
      const { device } = loaded.session
      if (!isBound(device) || !isAuthHost) return loaded
      const shown = readCookie(request.headers.cookie, cookies.bound)
      if (shown !== undefined && showsCookie(device, shown, now())) {
        if (!device.isSeen) noteSeen(ticket, loaded)
        return loaded
      }
      if (shown === undefined && device.isSeen) return reportMissing(request, loaded)
      return checkReloaded(request, ticket, shown, loaded)
    },

    async couldProve(request) {
      const ticket = readCookie(request.headers.cookie, cookies.session)
      if (ticket === undefined || !isAuthHost) return false
      // The login page works without the store.
      const loaded = await sessions.get(ticket).catch(() => undefined)
      return loaded !== undefined && !isShown(request, loaded)
    },

    offer: () => (isAuthHost && offersDevices(settings) ? offerDevice() : undefined),

    registration(device, ticket) {
      const challenge = registrationChallenge(device, ticket)
      return { 'secure-session-registration': `(ES256);path="${OWN_PATHS.deviceRegister}";challenge="${challenge}"` }
    },

    clearCookies({ headers }) {
      return readCookie(headers.cookie, cookies.bound) === undefined ? [] : [clearCookie(cookies.bound)]
    },
  }
}

function asSeen(device: DeviceBinding | undefined): BoundDevice | undefined {
  return isBound(device) && !device.isSeen ? seenDevice(device) : undefined
}

const REPORT_INTERVAL_MS = 60_000

function notesOf(loaded: LoadedSession): DeviceNotes {
  loaded.deviceNotes ??= {}
  return loaded.deviceNotes
}
