// What all calls to a provider need: its plan, metadata and keys, and a fetch with limits.

import type { Report } from '../events.ts'
import type { MetadataSource } from './discovery.ts'
import type { Dpop } from './dpop.ts'
import type { BoundedFetch } from './fetch.ts'
import type { TokenChecks } from './id-token.ts'
import type { ProviderPlan } from './plan.ts'

export interface ProviderConnection extends TokenChecks {
  readonly plan: ProviderPlan
  readonly redirectUri: string
  readonly metadata: MetadataSource
  readonly fetch: BoundedFetch
  readonly dpop: Dpop
  readonly timeoutMs: number
  readonly report: Report
}
