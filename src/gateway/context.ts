// What the routes of the gateway can reach, grouped by capability.

import type { ReadTarget } from '../access/request-path.ts'
import type { Rules } from '../access/rules.ts'
import type { RoleConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import type { KnownFindings } from '../doctor/doctor.ts'
import type { Finding } from '../doctor/finding.ts'
import type { TestSignIns } from '../doctor/test-sign-ins.ts'
import type { EntryCodes, HostTickets } from '../hosts/tickets.ts'
import type { FailedRequests, Pages } from '../http/answers.ts'
import type { CookieNames } from '../http/cookies.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { BeginRequest } from '../http/request.ts'
import type { BearerCallers, BearerPolicy } from '../identify/bearer.ts'
import type { ProtectedResources } from '../identify/protected-resources.ts'
import type { TrailReader } from '../observe/audit-trail.ts'
import type { History } from '../observe/history.ts'
import type { Observation } from '../observe/observation.ts'
import type { ShadowRefusals } from '../observe/shadow-refusals.ts'
import type { OwnPaths } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'
import type { Identities } from '../proxy/identity-headers.ts'
import type { ReverseProxy } from '../proxy/proxy.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { ExchangedTokens } from '../session/exchanged-tokens.ts'
import type { PersonalKeys } from '../session/personal-keys.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Attempts } from '../sign-in/attempts.ts'
import type { HookCalls } from '../sign-in/hooks.ts'
import type { LostCookieDetector } from '../sign-in/lost-cookies.ts'
import type { Store } from '../stores/store.ts'
import type { KeyCallers } from './key-callers.ts'
import type { KeyUse } from './key-use.ts'

export interface GatewayContext {
  /** At a host of `hosts`, BASE_URL is the address of that host. */
  readonly settings: Settings
  /** The host of `hosts` that these parts are for; `undefined` at the portal. */
  readonly host: ApplicationHost | undefined
  /** At the portal: the other hosts; `undefined` without any. */
  readonly entries: HostEntries | undefined
  readonly paths: OwnPaths
  readonly now: () => number
  /** Parses the target of a request, and remembers recent paths. */
  readonly readTarget: ReadTarget
  readonly store: Store
  /** `closing` is set when the process is about to end: every answer then closes its connection. */
  readonly lifecycle: { closing: boolean }
  readonly auth: Auth
  readonly proxy: ReverseProxy
  readonly pages: Pages
  readonly observe: Observe
  /** `undefined` if no rule admits tokens. */
  readonly resources: ProtectedResources | undefined
  readonly doctor: Doctor
}

/** A host of `hosts`: its users sign in at the portal. */
export interface ApplicationHost {
  /** As browsers send it in Host. */
  readonly name: string
  /** The address of the portal. */
  readonly portal: string
  readonly tickets: HostTickets
  readonly codes: EntryCodes
}

/** What the portal knows of the hosts whose users it signs in. */
export interface HostEntries {
  readonly names: readonly string[]
  rulesOf(name: string): Rules | undefined
  /** The name of the host with this origin. */
  nameOf(origin: string): string | undefined
  readonly tickets: HostTickets
  readonly codes: EntryCodes
  /** Whether a browser may have one more code: entries that repeat lead round in circles. */
  mayEnter(sessionKey: string, address: string): boolean
}

/** Who is there, and what they may see. */
export interface Auth {
  readonly providers: Providers
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly bearers: BearerCallers
  readonly keyCallers: KeyCallers
  readonly keyUse: KeyUse
  readonly personalKeys: PersonalKeys
  readonly roles: readonly RoleConfig[]
  readonly rules: Rules
  /** The policy of the configuration that is in use now, for requests that began under a former one. */
  readonly currentPolicy: () => BearerPolicy
  readonly keys: DerivedKeys
  readonly cookies: CookieNames
  readonly lostCookies: LostCookieDetector
  readonly identities: Identities
  readonly exchangedTokens: ExchangedTokens
  readonly rateLimit: RateLimit
  readonly hooks: HookCalls
}

export interface Observe extends Observation {
  readonly beginRequest: BeginRequest
  readonly history: History
  readonly auditTrail: TrailReader
  readonly shadowRefusals: ShadowRefusals
  readonly failedRequests: FailedRequests
  /** The metrics of all workers, as text for Prometheus; absent if they are turned off. */
  readonly metrics: (() => Promise<string>) | undefined
}

export interface Doctor {
  readonly examine: () => Promise<Finding[]>
  readonly findings: KnownFindings
  readonly testSignIns: TestSignIns
}
