// The providers that users can sign in through: one as a rule, or several, each with its own users.
import { MenshenError } from '../errors.ts'
import type { Config } from '../settings/config/config-file.ts'
import type { Settings } from '../settings/read.ts'
import { ONLY_PROVIDER, planNamedProvider, planProvider } from './make-plan.ts'
import type { ProviderPlan } from './plan.ts'
import { createProvider, type Provider, type ProviderOptions } from './provider.ts'
import { unconfiguredProvider } from './unconfigured.ts'

export interface Providers {
  /** The first one. */
  readonly main: Provider
  readonly all: readonly Provider[]
  /** The one that a session or an attempt belongs to; absent means the main one. `undefined` if it is there no more. */
  get(id: string | undefined): Provider | undefined
  /** Settings without which nobody can sign in. */
  readonly missing: readonly string[]
  close(): Promise<void>
}

/** What only a single provider takes from the environment. */
const OF_ONE_PROVIDER = ['PROVIDER', 'AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET'] as const

export function planProviders({ provider, providers }: Config, settings: Settings): [ProviderPlan, ...ProviderPlan[]] {
  const [first, ...more] = Object.entries(providers ?? {}).map(([id, config]) => planNamedProvider(id, config))
  if (!first) return [planProvider(provider, settings)]
  const given = OF_ONE_PROVIDER.filter(name => settings[name] !== undefined)
  if (given.length > 0)
    throw new MenshenError(
      'bad_settings',
      `${given.join(', ')} speak of one provider; expected them in each of providers.`,
    )
  if (more.length === 0) return [first]
  // Whose answer it is can be told only by the attempt that the same browser started.
  return [{ ...first, stateCheck: 'bound' }, ...more.map(plan => ({ ...plan, stateCheck: 'bound' as const }))]
}

export function createProviders(
  plans: readonly [ProviderPlan, ...ProviderPlan[]],
  options: ProviderOptions,
): Providers {
  const create = (plan: ProviderPlan) =>
    plan.missing.length > 0 ? unconfiguredProvider(plan) : createProvider(plan, options)
  const main = create(plans[0])
  const all = [main, ...plans.slice(1).map(create)]
  const byId = new Map(all.map(provider => [provider.plan.id, provider]))
  return {
    main,
    all,
    get: id => (id === undefined || id === ONLY_PROVIDER ? main : byId.get(id)),
    missing: plans.flatMap(({ missing }) => missing),
    async close() {
      await Promise.all(all.map(provider => provider.close()))
    },
  }
}
