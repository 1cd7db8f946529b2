// Conflicts between settings that are valid one by one.

import { networkInterfaces } from 'node:os'
import { type Problem, refuseIf } from '../errors.ts'
import { areNested, ownPathsOf, type SignInPathSettings } from '../paths.ts'
import { phrase, phrasedProblem } from '../text/text.ts'
import { ALWAYS_REMOVED, matchHeaders, plainName } from '../util/header-names.ts'
import { isLoopback, isProduction, portIn } from './deployment.ts'
import type { Config } from './file.ts'
import { problemAt } from './issue-text.ts'
import { ASSERTION_HEADER, type CheckedSettings, type Name, type Settings } from './settings.ts'
import { listUpstreams } from './upstreams.ts'

const IDENTITY_SETTINGS = [
  'IDENTITY_USER',
  'IDENTITY_EMAIL',
  'IDENTITY_NAME',
  'IDENTITY_ROLE',
  'IDENTITY_GROUPS',
  'IDENTITY_ASSERTION',
] as const

export function conflictsIn(checked: CheckedSettings, isGiven: (name: Name) => boolean): Problem[] {
  const problems: Problem[] = []
  for (const name of ['CLIENT_SECRET', 'SECRET'] as const)
    if (isGiven(name) && isGiven(`${name}_FILE`))
      problems.push(
        phrasedProblem(
          { namedSettings: [name, `${name}_FILE`] },
          phrase('cli.both_set', { name, other: `${name}_FILE` }),
        ),
      )
  if (isGiven('TLS_CERT_FILE') !== isGiven('TLS_KEY_FILE'))
    problems.push(phrasedProblem({ namedSettings: ['TLS_CERT_FILE', 'TLS_KEY_FILE'] }, phrase('cli.tls_together')))
  const headers = IDENTITY_SETTINGS.map(name => checked[name]).filter(name => name !== undefined)
  if (new Set(headers).size < headers.length)
    problems.push(
      phrasedProblem(
        { namedSettings: IDENTITY_SETTINGS },
        phrase('config.headers_shared', { names: IDENTITY_SETTINGS }),
      ),
    )
  const unkept = (checked.KEEP_HEADERS ?? []).filter(name => [...ALWAYS_REMOVED, ...headers].some(matchHeaders([name])))
  if (unkept.length > 0)
    problems.push(
      phrasedProblem(
        { setting: 'KEEP_HEADERS', example: 'x-user-id' },
        phrase('config.headers_not_kept', { names: unkept, example: 'x-user-id' }),
      ),
    )
  if (checked.STORE === 'memory:' && checked.WORKERS > 1)
    problems.push(
      phrasedProblem(
        { setting: 'STORE', namedSettings: ['STORE', 'WORKERS'], example: 'sqlite:./data/menshen.db' },
        phrase('cli.memory_not_shared'),
      ),
    )
  // Without BASE_URL, the certificate decides.
  const isPlain = isGiven('BASE_URL') ? checked.BASE_URL?.startsWith('http:') : !isGiven('TLS_CERT_FILE')
  if (checked.DEVICE_BOUND_SESSIONS === 'on' && isPlain)
    problems.push(
      phrasedProblem(
        {
          setting: 'DEVICE_BOUND_SESSIONS',
          namedSettings: ['DEVICE_BOUND_SESSIONS', 'BASE_URL'],
          example: OWN_EXAMPLE,
        },
        phrase('config.devices_need_https', { url: String(checked.BASE_URL), example: OWN_EXAMPLE }),
      ),
    )
  problems.push(...nestedPathsIn(checked))
  return problems
}

const SIGN_IN_PATH_SETTINGS = ['LOGIN_PATH', 'CALLBACK_PATH', 'LOGOUT_PATH'] as const

/** With `providers` there are paths below CALLBACK_PATH, so none of the three is below another. */
function nestedPathsIn(checked: CheckedSettings): Problem[] {
  return SIGN_IN_PATH_SETTINGS.flatMap((name, n) =>
    SIGN_IN_PATH_SETTINGS.slice(n + 1)
      // A path that was already refused has no value here.
      .flatMap(other => {
        const [path, otherPath] = [checked[name], checked[other]]
        if (!path || !otherPath || !areNested(path, otherPath)) return []
        const problem = phrase('config.paths_nested', { name, path, other, otherPath })
        return [phrasedProblem({ setting: other, namedSettings: [name, other] }, problem)]
      }),
  )
}

/**
 * Refuses sign-in paths that the configuration gives to an application, and rules for them, which would have no effect. `source` is
 * the configuration file.
 */
export function refuseTakenPaths(
  settings: SignInPathSettings,
  {
    rules = [],
    upstreams = {},
    providers = {},
    hosts = {},
  }: Pick<Config, 'rules' | 'upstreams' | 'providers' | 'hosts'>,
  source?: string,
): void {
  refuseIf([
    ...takenPathsIn(settings, { rules, upstreams, providers }, '', source),
    ...Object.entries(hosts).flatMap(([name, { rules = [], upstreams = {} }]) =>
      takenPathsIn(settings, { rules, upstreams, providers }, `hosts.${name}.`, source),
    ),
  ])
}

/** `below` is the path of the rules and upstreams in the configuration. */
function takenPathsIn(
  settings: SignInPathSettings,
  { rules, upstreams, providers }: Required<Pick<Config, 'rules' | 'upstreams' | 'providers'>>,
  below: string,
  source: string | undefined,
): Problem[] {
  const at = (path: string) => problemAt(source, path, phrase('config.own_path'))
  const { signIn, ...paths } = ownPathsOf(settings, Object.keys(providers ?? {}))
  const problems: Problem[] = []
  for (const [i, { path }] of (rules ?? []).entries())
    if (signIn.has(path)) problems.push(at(`${below}rules.${i}.path`))
  for (const prefix of Object.keys(upstreams ?? {})) {
    if (signIn.has(prefix)) problems.push(at(`${below}upstreams.${prefix}`))
    else if (prefix !== '/')
      for (const [name, path] of [
        ['LOGIN_PATH', paths.login],
        ['CALLBACK_PATH', paths.callback],
        ['LOGOUT_PATH', paths.logout],
      ] as const)
        if (`${path}/`.startsWith(`${prefix}/`))
          problems.push(
            phrasedProblem(
              { setting: name },
              phrase('config.path_below_upstream', {
                name,
                path,
                prefix,
                example: `/_menshen${path.slice(path.lastIndexOf('/'))}`,
              }),
            ),
          )
  }
  return problems
}

type HeaderSettings = Pick<Settings, (typeof IDENTITY_SETTINGS)[number] | 'FORWARD_ACCESS_TOKEN'>

/** Refuses headers of upstreams that another setting already uses for the user's identity or token. */
export function refuseTakenHeaders(
  settings: HeaderSettings,
  config: Pick<Config, 'upstreams' | 'hosts'>,
  source?: string,
): void {
  const identity = new Set([...IDENTITY_SETTINGS.map(name => plainName(settings[name])), ASSERTION_HEADER])
  const problems = listUpstreams(config).flatMap(({ path: segments, option }): Problem[] => {
    if (typeof option === 'string') return []
    const { headers = {}, accessToken = settings.FORWARD_ACCESS_TOKEN } = option
    return Object.keys(headers).flatMap(name => {
      const path = [...segments, 'headers', name].join('.')
      if (identity.has(plainName(name))) return [problemAt(source, path, phrase('config.header_has_user'))]
      if (accessToken && plainName(name) === 'authorization')
        return [problemAt(source, path, phrase('config.header_has_token'))]
      return []
    })
  })
  refuseIf(problems)
}

/** The development provider listens in the same process. */
export function refuseSharedPort({ PORT, DEV_PROVIDER_PORT }: Pick<Settings, 'PORT' | 'DEV_PROVIDER_PORT'>): void {
  if (PORT !== DEV_PROVIDER_PORT) return
  const example = String(DEV_PROVIDER_PORT < 65_535 ? DEV_PROVIDER_PORT + 1 : DEV_PROVIDER_PORT - 1)
  refuseIf([
    phrasedProblem(
      { setting: 'DEV_PROVIDER_PORT', namedSettings: ['PORT', 'DEV_PROVIDER_PORT'], example },
      phrase('cli.ports_shared', { port: PORT, example }),
    ),
  ])
}

/**
 * Refuses FORWARD_ACCESS_TOKEN if there is only forward-auth. A script of the application can send the same request through a proxy
 * that does not close our paths, and would read the token in the answer. So it is sent only to applications behind the gateway.
 */
export function refuseForwardedToken(
  settings: Pick<Settings, 'FORWARD_ACCESS_TOKEN' | 'TRUSTED_PROXIES' | 'UPSTREAM'>,
  config: Pick<Config, 'upstreams' | 'hosts'>,
): void {
  const { FORWARD_ACCESS_TOKEN, TRUSTED_PROXIES, UPSTREAM } = settings
  if (!FORWARD_ACCESS_TOKEN || !TRUSTED_PROXIES || UPSTREAM || listUpstreams(config).length > 0) return
  refuseIf([
    phrasedProblem(
      { setting: 'FORWARD_ACCESS_TOKEN', namedSettings: ['FORWARD_ACCESS_TOKEN', 'UPSTREAM'], example: 'false' },
      phrase('config.forward_auth_token'),
    ),
  ])
}

/** In production only loopback addresses may be plain http, unless ALLOW_PLAIN_HTTP accepts the risk. */
export function plainHttpIn(settings: CheckedSettings): Problem[] {
  if (!demandsHttps(settings)) return []
  return (['BASE_URL', 'AUTH_URL', 'LOGOUT_URL', 'JWKS_URL'] as const)
    .filter(name => isPlainHttp(settings[name] ?? ''))
    .map(name => {
      const example = name === 'BASE_URL' ? OWN_EXAMPLE : PROVIDER_EXAMPLE
      return phrasedProblem(
        { setting: name, namedSettings: [name, 'ALLOW_PLAIN_HTTP'], example },
        phrase('config.https_in_production', { name, url: settings[name] ?? '', example }),
      )
    })
}

const OWN_EXAMPLE = 'https://app.example.com'
const PROVIDER_EXAMPLE = 'https://idp.example.com'

export function demandsHttps(settings: Pick<CheckedSettings, 'NODE_ENV' | 'ALLOW_PLAIN_HTTP'>): boolean {
  return isProduction(settings) && !settings.ALLOW_PLAIN_HTTP
}

/** Plain http to another machine: others on the network can read it. */
export function isPlainHttp(address: string): boolean {
  return URL.canParse(address) && new URL(address).protocol === 'http:' && !isLoopback(address)
}

/** Checks the addresses of a provider, keyed by their paths in the configuration. */
export function addressProblems(
  addresses: Readonly<Record<string, string | undefined>>,
  settings: Pick<CheckedSettings, 'NODE_ENV' | 'ALLOW_PLAIN_HTTP'>,
): Problem[] {
  // An address with a variable that has no value is treated as missing, which is reported elsewhere.
  const complete = Object.entries(addresses).filter(([, url]) => url !== undefined && !url.includes('{'))
  return complete.flatMap(([path, url = '']): Problem[] => {
    const values = { name: path, url: shown(url), example: PROVIDER_EXAMPLE }
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      return [phrasedProblem({ path, example: PROVIDER_EXAMPLE }, phrase('config.not_an_address', values))]
    if (!demandsHttps(settings) || !isPlainHttp(url)) return []
    return [
      phrasedProblem(
        { path, namedSettings: ['ALLOW_PLAIN_HTTP'], example: PROVIDER_EXAMPLE },
        phrase('config.leads_to_plain_http', values),
      ),
    ]
  })
}

function shown(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 200)
}

// An upstream that is Menshen itself: a request to it would be forwarded to Menshen again and again.

type OwnAddress = Pick<Settings, 'UPSTREAM' | 'BASE_URL' | 'HOST' | 'PORT'>

export function refuseBaseUrlAsUpstream(settings: OwnAddress, config: Pick<Config, 'upstreams' | 'hosts'>): void {
  const { origin, protocol } = new URL(settings.BASE_URL)
  const own = new Set([origin, ...Object.keys(config.hosts ?? {}).map(host => `${protocol}//${host}`)])
  refuseOwnUpstreams(settings, config, url => own.has(new URL(url).origin))
}

/** Only for a process that listens on HOST and PORT instead of an inherited socket. */
export function refuseListenerAsUpstream(settings: OwnAddress, config: Pick<Config, 'upstreams' | 'hosts'>): void {
  const { HOST, PORT } = settings
  refuseOwnUpstreams(settings, config, url => portIn(url) === PORT && reaches(new URL(url).hostname, HOST))
}

function refuseOwnUpstreams(
  { UPSTREAM = '' }: OwnAddress,
  config: Pick<Config, 'upstreams' | 'hosts'>,
  isOwn: (url: string) => boolean,
): void {
  const isRefused = (url: string) => /^(?:https?|h2c):/.test(url) && isOwn(url.replace(/^h2c:/, 'http:'))
  const refusal = (name: string, url: string) => phrase('cli.upstream_is_menshen', { name, url })
  const problems: Problem[] = listUpstreams(config).flatMap(({ path: segments, option }) => {
    const path = segments.join('.')
    const url = typeof option === 'string' ? option : option.url
    return isRefused(url) ? [phrasedProblem({ path }, refusal(path, url))] : []
  })
  if (isRefused(UPSTREAM)) problems.unshift(phrasedProblem({ setting: 'UPSTREAM' }, refusal('UPSTREAM', UPSTREAM)))
  refuseIf(problems)
}

const ANY = ['0.0.0.0', '::']
const LOCAL = ['127.0.0.1', '::1']

/** Whether a connection to this name reaches the address `host`. Names that need DNS are left to the doctor. */
function reaches(hostname: string, host: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const listens = host.toLowerCase()
  const isLocalhost = name === 'localhost' || name.endsWith('.localhost')
  if (name === listens || ANY.includes(name)) return true
  if (isLocalhost) return LOCAL.includes(listens) || ANY.includes(listens) || listens === 'localhost'
  if (listens === 'localhost') return LOCAL.includes(name)
  if (!ANY.includes(listens)) return false
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  return name.startsWith('127.') || addresses.includes(name)
}
