// Advice: settings that are valid one by one, and risky or contradictory together. The start, the check, the doctor and the
// console use it; the sentence for operators is that of the event.
import type { EventCode } from '../events.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { isLoopback, isProduction, isUnknownEnvironment, portIn } from './deployment.ts'
import { DEVELOPMENT_CLIENT } from './dev-provider.ts'
import { type Config, countRules, effectiveRules, type RoleConfig } from './file.ts'
import { APP_PRESETS } from './provider-fields.ts'
import { isSecure } from './read.ts'
import { CONSOLE_ROLE } from './role-names.ts'
import type { Settings } from './settings.ts'

/** The text `advice.<code>` describes the problem; in English it is the sentence of the event. */
export type AdviceCode = Extract<
  EventCode,
  | 'weak_state_check'
  | 'https_without_tls'
  | 'port_of_proxy'
  | 'tls_without_https'
  | 'unknown_node_env'
  | 'local_base_url'
  | 'plain_http_allowed'
  | 'console_for_nobody'
  | 'unverified_email_allowed'
  | 'trusts_everybody'
  | 'auto_sign_in_without_effect'
  | 'machine_expired'
  | 'open_to_anyone'
  | 'admin_is_developer'
  | 'revoke_without_address'
  | 'bearer_without_audience'
  | 'max_age_with_keys'
  | 'secret_with_line_break'
>

export interface Advice {
  readonly code: AdviceCode
  readonly remedy: Phrase
}

/** What advice needs to know of a provider. */
export interface AdvisedProvider {
  readonly stateCheck: 'suffix' | 'bound'
  readonly pkce: boolean
  readonly preset: string
  readonly kind: string
  readonly endpoints: { readonly revocation?: string | undefined }
  readonly revoke: string
  readonly require: object
  readonly admitsAnyone: boolean
  readonly missing: readonly string[]
}

/** The parts of the configuration that decide who is admitted. */
type AdvisedConfig = Pick<Config, 'roles' | 'rules' | 'hosts'>

interface AdviceRow extends Advice {
  applies(
    settings: Settings,
    providers: readonly AdvisedProvider[],
    roles: readonly RoleConfig[] | undefined,
    expired: readonly string[],
    config: AdvisedConfig | undefined,
  ): boolean
}

const ROWS: readonly AdviceRow[] = [
  {
    code: 'weak_state_check',
    // The development provider signs anyone in with a click, whatever the state.
    applies: ({ CLIENT_ID }, providers) =>
      CLIENT_ID !== DEVELOPMENT_CLIENT.CLIENT_ID &&
      providers.some(({ stateCheck, pkce }) => stateCheck === 'suffix' && !pkce),
    remedy: phrase('advise_state_check'),
  },
  {
    code: 'https_without_tls',
    applies: settings => isSecure(settings) && !hasTls(settings) && !settings.TRUSTED_PROXIES,
    remedy: phrase('advise_trusted_proxies'),
  },
  {
    code: 'trusts_everybody',
    applies: ({ TRUSTED_PROXIES }) => TRUSTED_PROXIES?.isTooBroad === true,
    remedy: phrase('advise_own_proxies'),
  },
  {
    code: 'port_of_proxy',
    applies: settings => listensAtBaseUrl(settings) && !hasTls(settings) && isBehindProxy(settings),
    remedy: phrase('advise_port'),
  },
  {
    code: 'tls_without_https',
    applies: settings => hasTls(settings) && !isSecure(settings),
    remedy: phrase('advise_base_url'),
  },
  {
    code: 'unknown_node_env',
    applies: ({ NODE_ENV }) => isUnknownEnvironment(NODE_ENV),
    remedy: phrase('advise_node_env'),
  },
  {
    code: 'local_base_url',
    // Usually a forgotten BASE_URL: the provider would send every browser to its own machine.
    applies: settings => isProduction(settings) && isLoopback(settings.BASE_URL),
    remedy: phrase('advise_public_base_url'),
  },
  {
    code: 'plain_http_allowed',
    applies: settings => isProduction(settings) && settings.ALLOW_PLAIN_HTTP,
    remedy: phrase('advise_https'),
  },
  {
    code: 'console_for_nobody',
    applies: (_settings, _providers, roles) => roles !== undefined && !roles.some(({ role }) => role === CONSOLE_ROLE),
    remedy: phrase('advise_console_role', { role: CONSOLE_ROLE }),
  },
  {
    code: 'unverified_email_allowed',
    applies: ({ ALLOW_UNVERIFIED_EMAIL }) => ALLOW_UNVERIFIED_EMAIL,
    remedy: phrase('advise_email_verified'),
  },
  {
    code: 'auto_sign_in_without_effect',
    applies: ({ AUTO_SIGN_IN }, providers) => AUTO_SIGN_IN === 'on' && providers.length > 1,
    remedy: phrase('advise_one_provider'),
  },
  {
    code: 'auto_sign_in_without_effect',
    applies: ({ AUTO_SIGN_IN }, providers) => AUTO_SIGN_IN === 'in-app' && !providers.some(hasApp),
    remedy: phrase('advise_app_provider'),
  },
  {
    code: 'machine_expired',
    applies: (_settings, _providers, _roles, expired) => expired.length > 0,
    remedy: newKeyFor([]),
  },
  {
    code: 'open_to_anyone',
    applies: (_settings, providers, roles, _expired, config) =>
      config !== undefined && roles === undefined && countRules(config) === 0 && providers.some(isOpen),
    remedy: phrase('advise_require'),
  },
  {
    code: 'admin_is_developer',
    // The default rows are meant for idaas, where administrators assign the names. Rows without a provider are for the first one.
    applies: (_settings, [main], roles, _expired, config) =>
      config !== undefined && roles === undefined && main !== undefined && main.preset !== 'idaas' && isComplete(main),
    remedy: phrase('advise_developers', { role: CONSOLE_ROLE }),
  },
  {
    code: 'revoke_without_address',
    applies: (_settings, providers) => providers.some(revokesNowhere),
    remedy: phrase('advise_revocation_url'),
  },
  {
    code: 'bearer_without_audience',
    applies: ({ BEARER_AUDIENCE }, _providers, _roles, _expired, config = {}) =>
      BEARER_AUDIENCE === undefined &&
      effectiveRules(config).some(({ bearer, audience }) => bearer && audience === undefined),
    remedy: phrase('advise_audience'),
  },
  {
    code: 'max_age_with_keys',
    applies: (_settings, _providers, _roles, _expired, config = {}) =>
      effectiveRules(config).some(({ keys, maxAge }) => keys && maxAge !== undefined),
    remedy: phrase('advise_max_age'),
  },
  {
    code: 'secret_with_line_break',
    // Usually from `echo` without -n, in a secret of Kubernetes. Files are read without it.
    applies: ({ CLIENT_SECRET }) => /[\r\n]$/.test(CLIENT_SECRET?.reveal() ?? ''),
    remedy: phrase('advise_secret_without_line_break'),
  },
]

/**
 * `providers` are those in use, `expired` the names of machines, `roles` and `config` are from the configuration. Without `config`
 * it is unknown who is admitted.
 */
export function adviceFor(
  settings: Settings,
  providers: readonly AdvisedProvider[],
  roles?: readonly RoleConfig[] | undefined,
  expired: readonly string[] = [],
  config?: AdvisedConfig,
): Advice[] {
  return ROWS.filter(({ applies }) => applies(settings, providers, roles, expired, config)).map(row =>
    row.code === 'machine_expired' ? { ...row, remedy: newKeyFor(expired) } : row,
  )
}

function newKeyFor(machines: readonly string[]): Phrase {
  return phrase('advise_new_key', { command: 'menshen keys new', names: machines.join(', ') })
}

function isComplete({ missing }: AdvisedProvider): boolean {
  return missing.length === 0
}

function isOpen(provider: AdvisedProvider): boolean {
  return provider.admitsAnyone && Object.keys(provider.require).length === 0 && isComplete(provider)
}

/** With OpenID Connect, the metadata can have an address. */
function revokesNowhere({ revoke, kind, endpoints }: AdvisedProvider): boolean {
  return revoke === 'always' && kind !== 'oidc' && !endpoints.revocation
}

function hasApp({ preset }: AdvisedProvider): boolean {
  return APP_PRESETS.some(name => name === preset)
}

function hasTls({ TLS_CERT_FILE }: Settings): boolean {
  return TLS_CERT_FILE !== undefined
}

function isBehindProxy(settings: Settings): boolean {
  return isSecure(settings) || settings.TRUSTED_PROXIES !== undefined
}

function listensAtBaseUrl({ BASE_URL, PORT }: Settings): boolean {
  return isLoopback(BASE_URL) && portIn(BASE_URL) === PORT
}
