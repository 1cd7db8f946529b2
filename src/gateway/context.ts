// What every route of the gateway can reach.

import type { Rules } from '../access/rules.ts'
import type { Measure, Report } from '../events.ts'
import type { TrailReader } from '../observe/audit/trail-reader.ts'
import type { Finding } from '../observe/doctor/finding.ts'
import type { KnownFindings } from '../observe/doctor/known-findings.ts'
import type { Trials } from '../observe/doctor/trials.ts'
import type { Observation } from '../observe/observation.ts'
import type { Series } from '../observe/series/time-series.ts'
import type { ShadowRefusals } from '../observe/shadow-refusals.ts'
import type { Look } from '../pages/look/look.ts'
import type { Languages } from '../pages/words/languages.ts'
import type { Providers } from '../provider/providers.ts'
import type { Attempts } from '../session/attempts.ts'
import type { DerivedKeys } from '../session/keys/derived-keys.ts'
import type { Sessions } from '../session/sessions.ts'
import type { RoleConfig } from '../settings/config/config-file.ts'
import type { Settings } from '../settings/read.ts'
import type { Store } from '../stores/store.ts'
import type { BearerCallers } from './admission/bearer-callers.ts'
import type { LostCookieDetector } from './admission/lost-cookie.ts'
import type { LiveStreams } from './console/live-streams.ts'
import type { OpenStreams } from './forward/open-streams.ts'
import type { RequestHeaders } from './forward/request-headers.ts'
import type { ResponseHeaders } from './forward/response-headers.ts'
import type { Upstreams } from './forward/upstreams.ts'
import type { Hooks } from './hooks.ts'
import type { CookieNames } from './http/cookies.ts'
import type { FailedRequests } from './http/failed-requests.ts'
import type { RateLimit } from './http/rate-limit.ts'
import type { Identities } from './identity/identity-headers.ts'
import type { SlowClients } from './slow-clients/slow-clients.ts'

export interface GatewayContext {
  readonly settings: Settings
  readonly languages: Languages
  readonly look: Look
  readonly store: Store
  readonly providers: Providers
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly trials: Trials
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
  readonly series: Series
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
