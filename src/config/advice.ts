// Advice: settings that are valid one by one, and risky or contradictory together. The start, the check, the doctor and the
// console use it; the sentence for operators is that of the event.
import type { EventCode } from '../events.ts'
import { type Phrase, phrase } from '../phrases.ts'
import { CONSOLE_ROLE, type RoleConfig } from './config-file.ts'
import { isLoopback, isProduction, isUnknownEnvironment, portIn } from './deployment.ts'
import { APP_PRESETS } from './provider-config.ts'
import { isSecure } from './read.ts'
import type { Settings } from './settings.ts'

/** What users of the console read is `advice.<code>`. */
export type AdviceCode = Extract<
  EventCode,
  | 'weak_state_check'
  | 'https_without_tls'
  | 'port_of_proxy'
  | 'tls_without_https'
  | 'unknown_node_env'
  | 'plain_http_allowed'
  | 'console_for_nobody'
  | 'unverified_email_allowed'
  | 'trusts_everybody'
  | 'auto_sign_in_without_effect'
  | 'machine_expired'
>

interface Advice {
  readonly code: AdviceCode
  readonly remedy: Phrase
}

/** Of a provider: how its answers are bound to the browser, and which preset it is. */
export interface AdvisedProvider {
  readonly stateCheck: 'suffix' | 'bound'
  readonly pkce: boolean
  readonly preset: string
}

interface AdviceRow extends Advice {
  applies(
    settings: Settings,
    providers: readonly AdvisedProvider[],
    roles: readonly RoleConfig[] | undefined,
    hasExpiredMachine: boolean,
  ): boolean
}

const ROWS: readonly AdviceRow[] = [
  {
    code: 'weak_state_check',
    applies: (_settings, providers) => providers.some(({ stateCheck, pkce }) => stateCheck === 'suffix' && !pkce),
    remedy: phrase('advise_state_check'),
  },
  {
    code: 'https_without_tls',
    applies: settings => isSecure(settings) && !hasTls(settings) && !settings.TRUSTED_PROXIES,
    remedy: phrase('advise_trusted_proxies'),
  },
  {
    code: 'trusts_everybody',
    applies: ({ TRUSTED_PROXIES }) => TRUSTED_PROXIES?.isVast === true,
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
    applies: (_settings, _providers, _roles, hasExpiredMachine) => hasExpiredMachine,
    remedy: phrase('advise_new_key', { command: 'menshen keys new' }),
  },
]

/** `providers` are those in use, `roles` those of the configuration, if it has any. */
export function adviceFor(
  settings: Settings,
  providers: readonly AdvisedProvider[],
  roles?: readonly RoleConfig[] | undefined,
  hasExpiredMachine = false,
): Advice[] {
  return ROWS.filter(({ applies }) => applies(settings, providers, roles, hasExpiredMachine))
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
