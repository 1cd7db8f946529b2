// What a sign-in needs, and what differs between the sites that users sign in for.

import type { RoleConfig } from '../config/file.ts'
import type { TestSignIns } from '../doctor/test-sign-ins.ts'
import type { FailedRequests, Pages, ResponseAnswer } from '../http/answers.ts'
import type { SignOutNotice } from '../http/cookies.ts'
import type { BeginRequest, GatewayRequest } from '../http/request.ts'
import type { CallerIdentification } from '../identify/admission.ts'
import type { Auth, IdentifyContext, SessionCookies } from '../identify/context.ts'
import type { Observation } from '../observe/observation.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { UserId } from '../session/record.ts'
import type { ClosedSession } from '../session/sessions.ts'
import type { Store } from '../stores/store.ts'
import type { Attempts } from './attempts.ts'
import type { HookCalls } from './hooks.ts'
import type { ReplacedSessions } from './replaced-sessions.ts'

export interface SignInContext extends IdentifyContext {
  readonly site: Site
  readonly store: Store
  readonly auth: SignInAuth
  readonly pages: Pages
  readonly observe: SignInObserve
  readonly doctor: { readonly testSignIns: TestSignIns }
}

export interface SignInAuth extends Auth {
  readonly attempts: Attempts
  readonly replacedSessions: ReplacedSessions
  readonly roles: readonly RoleConfig[]
  readonly keys: DerivedKeys
  readonly hooks: HookCalls
  readonly personalKeys: RevocableKeys
  /** Features that keep something for a session remove it when its user signs out. Failures do not fail the sign-out. */
  readonly onSignOut: (ticket: string, closed: ClosedSession) => Promise<void>
}

/** The personal keys of users: see keys/. Each resolves to the number of keys that it revoked. */
export interface RevocableKeys {
  endAllOf(user: UserId): Promise<number>
  /** Revokes the keys of the user with this `sub` at the provider, which may differ from ours. */
  endAllOfSubject(subject: UserId): Promise<number>
}

export interface SignInObserve extends Observation {
  readonly beginRequest: BeginRequest
  readonly failedRequests: FailedRequests
}

/** BASE_URL, where users sign in, or a host of `hosts`, which sends them there and gets them back. */
export interface Site extends SessionCookies {
  /** At a host: redirects to BASE_URL, which leads back to the requested page. `undefined` at BASE_URL itself. */
  handoffAnswer(
    context: SignInContext,
    request: GatewayRequest,
    identification: Pick<CallerIdentification, 'cookies'>,
  ): ResponseAnswer | undefined
  /** The login page after a sign-out, and how the next sign-in leads to the requested page. */
  nextSignIn(context: SignInContext, request: GatewayRequest, wanted: string | null): NextPage
  /** Whether the query of the login page shows that the user has just signed out at a host. */
  signedOutAtHost(query: URLSearchParams): boolean
  /** The page that a return path leads to, as the login page shows it. */
  displayReturnPath(path: string): string
  /** The cookies that tell the login page that the user has signed out. */
  signedOutCookies(context: SignInContext, request: GatewayRequest, signedOut: SignOutNotice): readonly string[]
}

/** Where the browser goes next, and the state if it goes through the provider. */
export interface NextPage {
  readonly location: string
  readonly state?: string
  readonly cookies: readonly string[]
}
