// An examination: all probes of the doctor, for one configuration. It is loaded on demand.

import type { Config } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import type { MisspeltName } from '../config/suggestions.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import { type DerivedKeys, deriveKeys } from '../session/derived-keys.ts'
import type { Store } from '../stores/store.ts'
import { phrase } from '../text/text.ts'
import { type Finding, good, type Probe, runProbes } from './finding.ts'
import { hostProbes } from './host-probes.ts'
import { providerProbe } from './provider-probes.ts'
import { type ProxyProbeOptions, proxyProbe } from './proxy-probe.ts'
import { cookieFinding, settingsFindings, timeFinding } from './settings-probes.ts'
import { storeProbes } from './store-probes.ts'
import { certificateProbes, upstreamProbes } from './upstream-probes.ts'

export interface ExamineOptions {
  readonly settings: Settings
  readonly config: Config
  readonly plans: readonly [ProviderPlan, ...ProviderPlan[]]
  readonly now: () => number
  readonly misspelt?: readonly MisspeltName[]
  /** The development provider would be started: there is nothing to ask yet. */
  readonly isDevelopment?: boolean
  /** A store that is already open. */
  readonly store?: Store
}

const MAX_CALL_TIMEOUT_MS = 10_000
/** Discovery, the token endpoint, the token endpoint with up to two other settings, and opening a connection. */
const MAX_SEQUENTIAL_CALLS = 5

export async function examine(examined: ExamineOptions): Promise<Finding[]> {
  const { settings, config, plans, now, misspelt = [], store } = examined
  const timeoutMs = callTimeout(settings)
  const probes: Probe[] = [
    { name: 'settings', run: async () => settingsFindings(settings, plans, misspelt, config, now()) },
    { name: 'cookies', run: async () => [cookieFinding(settings)] },
    ...certificateProbes({ settings, now }),
    ...providerProbes(examined, timeoutMs),
    ...storeProbes({ settings, now, store, keys: keysOf(examined) }),
    ...upstreamProbes({ settings, config, timeoutMs, now, proxy: proxyProbeOptions(examined) }),
    proxyProbe(proxyProbeOptions(examined)),
    ...hostProbes({ settings, config, timeoutMs, now, proxy: proxyProbeOptions(examined) }),
    { name: 'time', run: async () => [timeFinding(now())] },
  ]
  return runProbes(probes, MAX_SEQUENTIAL_CALLS * timeoutMs + 2000)
}

function callTimeout({ PROVIDER_TIMEOUT_MS }: Settings): number {
  return Math.min(PROVIDER_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS)
}

export function proxyProbeOptions({
  settings,
  config,
  plans,
  now,
}: Pick<ExamineOptions, 'settings' | 'config' | 'plans' | 'now'>): ProxyProbeOptions {
  const { doctor } = keysOf({ settings, plans })
  const isGateway = settings.UPSTREAM !== undefined || Object.keys(config.upstreams ?? {}).length > 0
  return { settings, key: doctor, isGateway, timeoutMs: callTimeout(settings), now }
}

function keysOf({ settings, plans }: Pick<ExamineOptions, 'settings' | 'plans'>): DerivedKeys {
  return deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
}

function providerProbes({ settings, plans, now, isDevelopment }: ExamineOptions, timeoutMs: number): Probe[] {
  if (isDevelopment) return [{ name: 'provider', run: async () => [good('provider', phrase('development_provider'))] }]
  const options = { settings: { ...settings, PROVIDER_TIMEOUT_MS: timeoutMs }, now }
  return plans.map(plan => providerProbe(plans.length === 1 ? 'provider' : `provider ${plan.id}`, plan, options))
}
