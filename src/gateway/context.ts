// What every route of the gateway can reach.

import type { Rules } from '../access/rules.ts'
import type { RoleConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import type { LiveStreams } from '../console/live-streams.ts'
import type { KnownFindings } from '../doctor/doctor.ts'
import type { Finding } from '../doctor/finding.ts'
import type { TestSignIns } from '../doctor/test-sign-ins.ts'
import type { Measure, Report } from '../events.ts'
import type { TrailReader } from '../observe/audit-trail.ts'
import type { History } from '../observe/history.ts'
import type { Observation } from '../observe/observation.ts'
import type { ShadowRefusals } from '../observe/shadow-refusals.ts'
import type { Look } from '../pages/look.ts'
import type { Languages } from '../pages/words/words.ts'
import type { Providers } from '../provider/providers.ts'
import type { OpenStreams } from '../proxy/open-streams.ts'
import type { RequestHeaders } from '../proxy/request-headers.ts'
import type { ResponseHeaders } from '../proxy/response-headers.ts'
import type { SlowClients } from '../proxy/slow-clients.ts'
import type { Upstreams } from '../proxy/upstreams.ts'
import type { Attempts } from '../session/attempts.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Store } from '../stores/store.ts'
import type { LostCookieDetector } from './admission.ts'
import type { BearerCallers } from './bearer-callers.ts'
import type { CookieNames } from './cookies.ts'
import type { Hooks } from './hooks.ts'
import type { Identities } from './identity-headers.ts'
import type { RateLimit } from './rate-limit.ts'
import type { FailedRequests } from './respond.ts'

export interface GatewayContext {
  readonly settings: Settings
  readonly languages: Languages
  readonly look: Look
  readonly store: Store
  readonly providers: Providers
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly trials: TestSignIns
  readonly roles: readonly RoleConfig[]
  readonly rules: Rules
  readonly shadowRefusals: Pick<ShadowRefusals, 'of'>
  readonly bearers: BearerCallers
  /** Of the configuration that counts by now, for what was begun under a former one. */
  readonly inUse: () => Pick<GatewayContext, 'settings' | 'rules' | 'bearers'>
  readonly keys: DerivedKeys
  readonly cookies: CookieNames
  readonly identities: Identities
  readonly requestHeaders: RequestHeaders
  readonly responseHeaders: ResponseHeaders
  readonly upstreams: Upstreams
  readonly streams: OpenStreams
  readonly slowClients: SlowClients
  readonly lostCookies: LostCookieDetector
  readonly rateLimit: RateLimit
  readonly failedRequests: FailedRequests
  readonly auditTrail: TrailReader
  /** Set when the process is about to end: every answer then closes its connection. */
  readonly lifecycle: { closing: boolean }
  /** What the doctor finds. */
  readonly examine: () => Promise<Finding[]>
  readonly findings: KnownFindings
  readonly series: History
  readonly liveStreams: LiveStreams
  readonly report: Report
  readonly measure: Measure
  readonly observation: Pick<Observation, 'begun' | 'ended' | 'answered'>
  /** The metrics of all workers, as text for Prometheus; absent if they are turned off. */
  readonly metrics: (() => Promise<string>) | undefined
  /** Functions of the application around us. */
  readonly hooks: Hooks
  readonly now: () => number
}
