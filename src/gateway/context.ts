// What the gateway needs to handle a request.

import type { TokenExchangeConfig } from '../config/upstreams.ts'
import type { KnownFindings } from '../doctor/doctor.ts'
import type { Finding } from '../doctor/finding.ts'
import type { TestSignIns } from '../doctor/test-sign-ins.ts'
import type { TrailReader } from '../observe/audit-trail.ts'
import type { History } from '../observe/history.ts'
import type { ShadowRefusals } from '../observe/shadow-refusals.ts'
import type { IdentityIssuer } from '../proxy/identity-headers.ts'
import type { ReverseProxy } from '../proxy/proxy.ts'
import type { LoadedSession } from '../session/cache.ts'
import type { EndSignals } from '../session/end-signals.ts'
import type { SignInContext, SignInObserve } from '../sign-in/context.ts'

export interface GatewayContext extends SignInContext {
  /** `closing` is set when the process is about to end: every answer then closes its connection. */
  readonly lifecycle: { closing: boolean }
  readonly proxy: ReverseProxy
  readonly identityIssuer: IdentityIssuer
  readonly exchangeToken: ExchangeToken
  readonly endSignals: EndSignals
  readonly observe: Observe
  readonly doctor: Doctor
}

/** Access tokens for other applications: see token-exchange/. */
export interface ExchangeToken {
  /** Throws if `target` is not valid: with a misspelt name the token would be for any application. */
  read(target: TokenExchangeConfig): TokenExchangeConfig
  get(ticket: string, loaded: LoadedSession, target: TokenExchangeConfig): Promise<string>
}

export interface Observe extends SignInObserve {
  readonly history: History
  readonly auditTrail: TrailReader
  readonly shadowRefusals: ShadowRefusals
  /** The metrics of all workers, as text for Prometheus; absent if they are turned off. */
  readonly metrics: (() => Promise<string>) | undefined
}

export interface Doctor {
  readonly examine: () => Promise<Finding[]>
  readonly findings: KnownFindings
  readonly testSignIns: TestSignIns
}
