// What every route of the gateway can reach.
import type { Log } from '../log.ts'
import type { Provider } from '../provider/provider.ts'
import type { Attempts } from '../session/attempts.ts'
import type { HouseKeys } from '../session/keys.ts'
import type { Rules } from '../session/rules.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Settings } from '../settings.ts'
import type { Store } from '../stores/store.ts'
import type { CookieNames } from './cookies.ts'
import type { Upstreams } from './forward/upstreams.ts'
import type { Identities } from './identity.ts'
import type { Landings } from './landing.ts'
import type { OpenStreams } from './open-streams.ts'
import type { RateLimit } from './rate-limit.ts'

export interface House {
  readonly settings: Settings
  readonly store: Store
  readonly provider: Provider
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly rules: Rules
  readonly keys: HouseKeys
  readonly cookies: CookieNames
  readonly identities: Identities
  readonly upstreams: Upstreams
  readonly streams: OpenStreams
  readonly landings: Landings
  readonly rateLimit: RateLimit
  /** Set when the process is about to end: every answer then closes its connection. */
  readonly door: { closing: boolean }
  readonly log: Log
  readonly now: () => number
}
