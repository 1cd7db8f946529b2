// What is risky or does not fit together although each setting is right by itself. The start, the console and whoever
// else gives advice take it from here; the sentence for operators is that of the event.
import type { EventCode } from '../events.ts'
import { isLoopback, isProduction, isUnknownEnvironment, portIn } from './deployment.ts'
import { isSecure, type Settings } from './read.ts'

type AdviceCode = Extract<
  EventCode,
  | 'weak_state_check'
  | 'https_without_tls'
  | 'port_of_proxy'
  | 'tls_without_https'
  | 'unknown_node_env'
  | 'plain_http_allowed'
>

interface Advice {
  readonly code: AdviceCode
  readonly remedy: string
  /** For the console. */
  readonly chinese: string
}

/** How a provider's answers are bound to the browser. */
export interface StateCheck {
  readonly stateCheck: 'suffix' | 'bound'
  readonly pkce: boolean
}

interface AdviceRow extends Advice {
  applies(settings: Settings, checks: readonly StateCheck[]): boolean
}

const ROWS: readonly AdviceRow[] = [
  {
    code: 'weak_state_check',
    applies: (_settings, checks) => checks.some(({ stateCheck, pkce }) => stateCheck === 'suffix' && !pkce),
    remedy: 'STATE_CHECK=bound',
    chinese:
      '登录状态参数只检查后缀（STATE_CHECK=suffix）：别的网站可以让访客在不知情时以他人身份登录。设置 STATE_CHECK=bound 可以防止。',
  },
  {
    code: 'https_without_tls',
    applies: settings => isSecure(settings) && !hasTls(settings) && !settings.TRUSTED_PROXIES,
    remedy: 'TRUSTED_PROXIES with the address of the proxy in front, or TLS_CERT_FILE and TLS_KEY_FILE',
    chinese:
      'BASE_URL 是 https，但本服务只提供 http，也没有信任任何代理：所有访客会被当作来自同一个地址。请用 TRUSTED_PROXIES 写明前面代理的地址，或设置 TLS_CERT_FILE 和 TLS_KEY_FILE。',
  },
  {
    code: 'port_of_proxy',
    applies: settings => listensAtBaseUrl(settings) && !hasTls(settings) && isBehindProxy(settings),
    remedy: "BASE_URL with the proxy's address, and PORT with another port than that, for example 3000",
    chinese:
      '前面似乎有代理，但 BASE_URL 的端口就是本服务自己监听的端口：浏览器会绕过代理，或者打不开页面。请把 BASE_URL 设为代理的地址，并把 PORT 设为另一个端口（例如 3000）。',
  },
  {
    code: 'tls_without_https',
    applies: settings => hasTls(settings) && !isSecure(settings),
    remedy: 'BASE_URL=https://…',
    chinese:
      '已设置 TLS_CERT_FILE 和 TLS_KEY_FILE，但 BASE_URL 是 http：登录后浏览器会回到打不开的地址，Cookie 也没有 Secure 标记。请把 BASE_URL 改成 https。',
  },
  {
    code: 'unknown_node_env',
    applies: ({ NODE_ENV }) => isUnknownEnvironment(NODE_ENV),
    remedy: 'NODE_ENV=production or NODE_ENV=development',
    chinese: 'NODE_ENV 不是已知的值，按生产环境处理。请设置 NODE_ENV=production 或 NODE_ENV=development。',
  },
  {
    code: 'plain_http_allowed',
    applies: settings => isProduction(settings) && settings.ALLOW_PLAIN_HTTP,
    remedy: 'https addresses, and no ALLOW_PLAIN_HTTP',
    chinese: '生产环境允许使用 http（ALLOW_PLAIN_HTTP=true）：令牌和 Cookie 在途中可能被读取。请改用 https。',
  },
]

/** `checks` are those of the providers in use. */
export function adviceFor(settings: Settings, checks: readonly StateCheck[]): Advice[] {
  return ROWS.filter(({ applies }) => applies(settings, checks))
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
