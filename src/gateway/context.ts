// What every route of the gateway can reach.

import type { Rules } from '../access/rules.ts'
import type { Report } from '../events.ts'
import type { Provider } from '../provider/provider.ts'
import type { Attempts } from '../session/attempts.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Settings } from '../settings/read.ts'
import type { Store } from '../stores/store.ts'
import type { LostCookieDetector } from './admission/lost-cookie.ts'
import type { OpenStreams } from './forward/open-streams.ts'
import type { RequestHeaders } from './forward/request-headers.ts'
import type { Upstreams } from './forward/upstreams.ts'
import type { CookieNames } from './http/cookies.ts'
import type { RateLimit } from './http/rate-limit.ts'
import type { SlowClients } from './http/slow-clients.ts'
import type { Identities } from './identity/identity-headers.ts'

export interface GatewayContext {
  readonly settings: Settings
  readonly store: Store
  readonly provider: Provider
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly rules: Rules
  readonly keys: DerivedKeys
  readonly cookies: CookieNames
  readonly identities: Identities
  readonly requestHeaders: RequestHeaders
  readonly upstreams: Upstreams
  readonly streams: OpenStreams
  readonly slowClients: SlowClients
  readonly lostCookies: LostCookieDetector
  readonly rateLimit: RateLimit
  /** Set when the process is about to end: every answer then closes its connection. */
  readonly lifecycle: { closing: boolean }
  readonly report: Report
  readonly now: () => number
}
