// What every call to a provider needs: its plan, its metadata, its keys, and a fetch with limits.

import type { Client } from 'oauth4webapi'
import * as oauth from 'oauth4webapi'
import type { Report } from '../../events.ts'
import type { TokenChecks } from '../oidc/id-token.ts'
import type { MetadataSource } from '../oidc/metadata.ts'
import type { ProviderPlan } from '../plan.ts'
import { type BoundedFetch, USER_AGENT } from './bounded-fetch.ts'

export interface ProviderConnection extends TokenChecks {
  readonly plan: ProviderPlan
  readonly client: Client
  readonly redirectUri: string
  readonly metadata: MetadataSource
  readonly fetch: BoundedFetch
  readonly timeoutMs: number
  readonly report: Report
}

export function requestOptions(fetch: BoundedFetch) {
  return {
    [oauth.customFetch]: fetch,
    headers: { 'user-agent': USER_AGENT },
    // The settings have already judged plain http.
    [oauth.allowInsecureRequests]: true,
  }
}
