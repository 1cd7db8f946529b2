// What identification and the rules need, and where features plug into them.

import type { ReadTarget } from '../access/request-path.ts'
import type { Rules } from '../access/rules.ts'
import type { Settings } from '../config/settings.ts'
import type { CookieNames } from '../http/cookies.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { BeginRequest, GatewayRequest } from '../http/request.ts'
import type { Observation } from '../observe/observation.ts'
import type { OwnPaths } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'
import type { LoadedSession } from '../session/cache.ts'
import type { OfferedDevice } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { CallerIdentification } from './admission.ts'
import type { BearerCallers, BearerPolicy } from './bearer.ts'
import type { LostCookieDetector } from './lost-cookies.ts'
import type { ProtectedResources } from './protected-resources.ts'

export interface IdentifyContext {
  /** At a host of `hosts`, BASE_URL is the address of that host. */
  readonly settings: Settings
  readonly site: SessionCookies
  readonly paths: OwnPaths
  readonly now: () => number
  /** Parses the target of a request, and caches recent paths. */
  readonly readTarget: ReadTarget
  readonly auth: Auth
  readonly observe: Observation & { readonly beginRequest: BeginRequest }
  /** `undefined` if no rule admits tokens. */
  readonly resources: ProtectedResources | undefined
}

/** Identifies the caller and decides what they may access. */
export interface Auth {
  readonly providers: Providers
  readonly sessions: Sessions
  readonly bearers: BearerCallers
  readonly rules: Rules
  /** The policy of the configuration that is in use now, for requests that began under a former one. */
  readonly currentPolicy: () => BearerPolicy
  readonly cookies: CookieNames
  readonly lostCookies: LostCookieDetector
  readonly rateLimit: RateLimit
  readonly devices: DeviceCheck
  readonly identifyByKey: IdentifyByKey
}

/** How the cookie of a site leads to a session: a site is BASE_URL, where users sign in, or a host of `hosts`. */
export interface SessionCookies {
  /** Whether users sign in here. */
  readonly isAuthHost: boolean
  /** The ticket of the session that a cookie leads to, if it can be found without the store. */
  findTicketSync(cookie: string): string | undefined
  findTicket(cookie: string): Promise<string | undefined>
  /** The session of a cookie has ended. */
  forget(cookie: string): void
  /** A Set-Cookie with the same ticket, for a session that lasts longer now. */
  renewedCookie(cookie: string, loaded: LoadedSession): string
  /** Cookies for the browser of a session that a failed refresh has ended. */
  endedCookies(): readonly string[]
}

/**
 * The request that carries the credentials of a caller. Where a proxy asks about another request, the rules judge that one
 * (`asked`). This type has neither method nor path, so that it cannot be passed in place of `asked`.
 */
export type CredentialRequest = Pick<GatewayRequest, 'headers' | 'observed'>

/** Sessions that are bound to a device: see devices/. */
export interface DeviceCheck {
  /** The session, if the request comes from the device that it is bound to, or if it is bound to none. */
  check(request: CredentialRequest, ticket: string, loaded: LoadedSession): MaybePromise<LoadedSession | undefined>
  /** Whether the request shows that it comes from the device, as far as this process knows. */
  isFromDevice(request: CredentialRequest, loaded: LoadedSession): boolean
  /** Whether the session of the browser is valid again once it has proven its device. */
  couldProve(request: CredentialRequest): Promise<boolean>
  /** The offer to a new session; `undefined` if new sessions are not bound. */
  offer(): OfferedDevice | undefined
  /** The headers that ask the browser to register a key for it. */
  registration(device: OfferedDevice, ticket: string): Record<string, string>
  /** Cookies for a browser that signs out. */
  clearCookies(request: Pick<CredentialRequest, 'headers'>): readonly string[]
}

/**
 * Callers with a key: see keys/. `outer` carries the key, the rules judge `asked`. Returns `undefined` if there is no key, or
 * one that is not for us there: then the request may have a token of the provider.
 */
export type IdentifyByKey = (
  outer: CredentialRequest,
  asked: GatewayRequest,
  identification: CallerIdentification,
) => MaybePromise<CallerIdentification> | undefined
