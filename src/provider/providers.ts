// The providers that users can sign in with: usually one, or several with separate users.

import { addressProblems, demandsHttps } from '../config/conflicts.ts'
import type { Config } from '../config/file.ts'
import { FIELD_ROWS, type FieldPath, settingFor } from '../config/provider-fields.ts'
import type { Settings } from '../config/settings.ts'
import { listUpstreams, type UpstreamConfig } from '../config/upstreams.ts'
import { type Problem, refuseIf } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem, quoted } from '../text/text.ts'
import { issuerIn, refused } from './bearer.ts'
import { needsDiscovery } from './discovery.ts'
import { usesMutualTls } from './mutual-tls.ts'
import { callbackFor, configPath, ONLY_PROVIDER, type ProviderPlan, planNamedProvider, planProvider } from './plan.ts'
import { createProvider, type Provider, type ProviderOptions, unconfiguredProvider } from './provider.ts'

export interface Providers {
  /** The first one. */
  readonly main: Provider
  readonly all: readonly Provider[]
  /** The provider of a session or attempt, which has no id with a single provider. `undefined` if it is no longer configured. */
  get(id: string | undefined): Provider | undefined
  /** The names shown to users, by provider id; absent with a single provider. */
  readonly names: ReadonlyMap<string, Phrase> | undefined
  /** Settings without which no user can sign in. */
  readonly missing: readonly string[]
  close(): Promise<void>
}

type Plans = [ProviderPlan, ...ProviderPlan[]]

/** The plans of all providers; throws if they contradict the settings. */
export function planProviders(config: Config, settings: Settings): Plans {
  const [first, ...more] = planAll(config, settings)
  const problems = [first, ...more].flatMap(plan => problemsOf(plan, config, settings))
  refuseIf([...problems, ...exchangeProblems([first, ...more], config)])
  const inUse = (plan: ProviderPlan): ProviderPlan => ({
    ...plan,
    callbackPath: callbackFor(plan.id, settings.CALLBACK_PATH),
    httpsOnly: demandsHttps(settings),
    dpop: plan.dpop === 'auto' && forwardsTokens(config, settings) ? 'off' : plan.dpop,
    ...(settings.ALLOW_UNVERIFIED_EMAIL && { emailVerified: {} }),
  })
  return [inUse(first), ...more.map(inUse)]
}

/** Problems that would otherwise appear at a sign-in or sign-out, or never. */
function problemsOf(plan: ProviderPlan, config: Config, settings: Settings): Problem[] {
  const { id, kind, issuer, discoveryUrl, endpoints, emailStep, clientAuth, pkce, logout } = plan
  const where = configPath(id)
  const problems = addressProblems(
    {
      // Without OpenID Connect the issuer is only a name, and no request goes there.
      [`${where}.issuer`]: kind === 'oidc' ? issuer : undefined,
      [`${where}.discoveryUrl`]: discoveryUrl,
      ...Object.fromEntries(Object.entries(endpoints).map(([name, url]) => [`${where}.${name}Url`, url])),
      [`${where}.emailStep.url`]: emailStep?.url,
    },
    settings,
  )
  /** A setting applies to a single provider only. */
  const or = (field: string, name: string) =>
    id === ONLY_PROVIDER ? phrase('config.either', { one: field, other: name }) : field
  const naming = (name: string) => (id === ONLY_PROVIDER ? { namedSettings: [name] } : {})
  if (clientAuth === 'none' && !pkce)
    problems.push(
      phrasedProblem(
        { path: `${where}.clientAuth`, ...naming('PKCE') },
        phrase('config.public_client', { where, expected: or(`${where}.pkce: true`, 'PKCE=S256') }),
      ),
    )
  problems.push(...profileProblems(plan, config, settings, where))
  // With OpenID Connect, the metadata may have a logout endpoint.
  if (kind !== 'oidc' && (logout.style === 'browser' || logout.style === 'server') && !endpoints.logout)
    problems.push(
      phrasedProblem(
        { path: `${where}.logout.style`, ...naming('LOGOUT_URL') },
        phrase('config.no_logout_address', {
          where,
          style: logout.style,
          expected: or(`${where}.logoutUrl`, 'LOGOUT_URL'),
        }),
      ),
    )
  return problems
}

/** Problems of pushed requests, mutual TLS and DPoP. */
function profileProblems(plan: ProviderPlan, config: Config, settings: Settings, where: string): Problem[] {
  const { id, par, dpop, clientAuth, certificate, endpoints } = plan
  /** A named provider has no settings. */
  const named = (path: FieldPath) => (id === ONLY_PROVIDER ? (settingFor(path) ?? path) : `${where}.${path}`)
  const naming = (own: readonly string[], others: readonly string[] = []) => {
    const namedSettings = [...(id === ONLY_PROVIDER ? own : []), ...others]
    return namedSettings.length > 0 ? { namedSettings } : {}
  }
  const problems: Problem[] = []
  if (usesMutualTls(plan) && !certificate)
    problems.push(
      phrasedProblem(
        { path: `${where}.clientAuth`, ...naming(['CLIENT_AUTH', 'CLIENT_CERT_FILE', 'CLIENT_KEY_FILE']) },
        phrase('config.needs_pair', {
          name: named('clientAuth'),
          value: clientAuth ?? '',
          cert: named('clientCertFile'),
          key: named('clientKeyFile'),
        }),
      ),
    )
  if (par === 'on' && !endpoints.par && !needsDiscovery(plan))
    problems.push(
      phrasedProblem(
        { path: `${where}.par`, ...naming(['PAR']) },
        phrase('config.no_par_address', { name: named('par'), where }),
      ),
    )
  if (dpop === 'on' && forwardsTokens(config, settings))
    problems.push(
      phrasedProblem(
        {
          path: `${where}.dpop`,
          ...naming(['DPOP'], settings.FORWARD_ACCESS_TOKEN ? ['FORWARD_ACCESS_TOKEN'] : []),
        },
        phrase('config.dpop_with_token', {
          name: named('dpop'),
          other: settings.FORWARD_ACCESS_TOKEN ? 'FORWARD_ACCESS_TOKEN' : phrase('config.token_of_upstream'),
        }),
      ),
    )
  return problems
}

/** Whether an application gets the access token of its user, or one in exchange for it. */
function forwardsTokens(config: Config, settings: Settings): boolean {
  return settings.FORWARD_ACCESS_TOKEN || listUpstreams(config).some(({ option }) => accessTokenOf(option))
}

function accessTokenOf(option: string | UpstreamConfig): UpstreamConfig['accessToken'] {
  return typeof option === 'string' ? undefined : option.accessToken
}

/** If no provider issues tokens for users, none can be exchanged. */
function exchangeProblems(plans: Plans, config: Config): Problem[] {
  if (plans.some(({ kind }) => kind !== 'company_token')) return []
  return listUpstreams(config)
    .filter(({ option }) => typeof accessTokenOf(option) === 'object')
    .map(({ path: place }) => {
      const path = [...place, 'accessToken'].join('.')
      return phrasedProblem({ path }, phrase('config.no_token_to_exchange', { path }))
    })
}

function planAll({ provider, providers }: Config, settings: Settings): Plans {
  const [first, ...more] = Object.entries(providers ?? {}).map(([id, config]) => planNamedProvider(id, config))
  if (!first) return [planProvider(provider, settings)]
  const problems = FIELD_ROWS.flatMap(([path]) => {
    const name = settingFor(path)
    // By now the secret in CLIENT_SECRET_FILE is CLIENT_SECRET.
    if (name === undefined || name === 'CLIENT_SECRET_FILE' || !settings[name]) return []
    const instead = `providers.${first.id}.${path}`
    return [phrasedProblem({ setting: name }, phrase('config.setting_with_providers', { name, instead }))]
  })
  refuseIf(problems)
  if (more.length === 0) return [first]
  // Only the attempt that the same browser started shows which provider an answer is from.
  return [{ ...first, stateCheck: 'bound' }, ...more.map(plan => ({ ...plan, stateCheck: 'bound' as const }))]
}

/** The id that scopes names of users; absent with a single provider. */
export function scopeOf({ plan }: Pick<Provider, 'plan'>): string | undefined {
  return plan.id === ONLY_PROVIDER ? undefined : plan.id
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
    get: (id = ONLY_PROVIDER) => byId.get(id),
    names: all.length > 1 ? new Map(plans.map(({ id, label = quoted(id) }) => [id, label])) : undefined,
    missing: plans.flatMap(({ missing }) => missing),
    async close() {
      await Promise.all(all.map(provider => provider.close()))
    },
  }
}

/** The provider of a token, by the issuer in it. An opaque token belongs to the main provider. */
export async function providerOfToken({ all, main }: Providers, token: string): Promise<Provider> {
  const issuer = issuerIn(token)
  let trouble: unknown
  for (const provider of issuer === undefined ? [] : all) {
    try {
      if (provider.canVerify && (await provider.hasIssuer(issuer ?? ''))) return provider
    } catch (error) {
      trouble = error
    }
  }
  if (trouble) throw trouble
  if (issuer !== undefined && main.canVerify) throw refused('iss')
  return main
}

/** Whether the token may need a call to the provider. Other tokens are verified by cached keys. */
export function mayNeedIntrospection({ all }: Providers, token: string): boolean {
  return issuerIn(token) === undefined || !all.every(provider => provider.canVerify)
}
