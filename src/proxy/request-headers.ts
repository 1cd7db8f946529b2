// The headers of a forwarded request: the browser's, without those that are only for the connection, that could misrepresent the
// user, or that are ours.

import type { IncomingMessage } from 'node:http'
import { needsDestination } from '../access/affected-paths.ts'
import { isTrusted, type Networks, plainAddress } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { Report } from '../events.ts'
import type { Identification, IdentitySource, ProxyRequest } from '../http/caller.ts'
import { REQUEST_ID } from '../observe/observed-request.ts'
import { connectionHeaders, splitList } from '../util/header-list.ts'
import { ALWAYS_REMOVED, matchHeaders, plainName } from '../util/header-names.ts'
import { containsKey } from '../util/key-form.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { createCookieFilter, type OwnCookies } from '../util/own-cookies.ts'
import { memoize } from '../util/recent.ts'
import { destinationForUpstream, withoutPrefix } from './stripped-prefix.ts'
import type { Upstream } from './upstreams.ts'

/** Names and values in turn. */
export type RequestHeaders = (
  upstream: Pick<
    Upstream,
    | 'host'
    | 'hostHeader'
    | 'sentOrigin'
    | 'prefix'
    | 'strippedPrefix'
    | 'audience'
    | 'headers'
    | 'accessToken'
    | 'tokenExchange'
    | 'destination'
  >,
  incoming: Pick<IncomingMessage, 'rawHeaders'>,
  request: ProxyRequest,
  identification: Identification,
  /** The token of `exchange`; absent for a visitor. */
  exchanged?: string,
) => MaybePromise<string[]>

interface RequestHeadersOptions {
  readonly settings: Settings
  readonly identitySource: IdentitySource
  readonly ownCookies: OwnCookies
  readonly report: Report
}

export function createRequestHeaders(options: RequestHeadersOptions): RequestHeaders {
  const { settings, identitySource, ownCookies, report } = options
  const { TRUSTED_PROXIES } = settings
  const { protocol, host: ownHost, origin: ownOrigin } = new URL(settings.BASE_URL)
  const scheme = protocol.slice(0, -1)
  const withoutOurs = createCookieFilter(ownCookies)
  const headerOf = createHeaderPolicies(settings, identitySource.names)

  return (upstream, { rawHeaders }, request, identification, exchanged) => {
    const { loaded, program: bearer } = identification
    const { host, connection, te } = request.headers
    const listed = connectionHeaders(connection)
    const named = listed && new Set([...listed].map(plainName))
    const configured = upstream.headers
    const token = bearer?.who.keyKind ? undefined : bearer
    // A token of a machine was meant for us; with `accessToken` this header is ours.
    const isTokenOurs = token !== undefined || upstream.accessToken || upstream.tokenExchange !== undefined
    const headers = ['host', upstream.hostHeader ?? (host || upstream.host)]
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const { name, plain, policy } = headerOf(rawHeaders[i] as string, i / 2)
      if (policy === 'dropped' || named?.has(plain) || configured?.names.has(plain)) continue
      const value = rawHeaders[i + 1] as string
      if (policy === 'kept') headers.push(name, value)
      else if (policy === 'credentials') {
        // No matter who the caller is, and whether or not the key is valid here.
        if (!isTokenOurs && !containsKey(value)) headers.push(name, value)
      } else if (policy === 'address') headers.push(name, sentAddress(upstream, value, ownOrigin))
      else if (policy === 'destination')
        headers.push(name, needsDestination(request.method) ? destinationForUpstream(upstream, value) : value)
      else {
        const others = withoutOurs(value)
        if (others) headers.push(name, others)
      }
    }
    if (te !== undefined && splitList(te).includes('trailers')) headers.push('te', 'trailers')
    headers.push('x-forwarded-for', forwardedFor(TRUSTED_PROXIES, request))
    headers.push('x-forwarded-proto', scheme, 'x-forwarded-host', ownHost, REQUEST_ID, request.observed.requestId)
    if (upstream.strippedPrefix !== '') headers.push('x-forwarded-prefix', upstream.strippedPrefix)
    const caller = loaded ?? bearer
    if (configured) headers.push(...configured.headersFor(caller, report))
    if (!caller) return headers
    return andThen(identitySource.headersFor(caller, upstream.audience, request.observed), ({ sent }) => {
      headers.push(...sent)
      if (exchanged !== undefined) headers.push('authorization', `Bearer ${exchanged}`)
      else if (upstream.accessToken) {
        const own = loaded ? bearerOf(loaded.session) : token && request.headers.authorization
        if (own) headers.push('authorization', own)
      }
      return headers
    })
  }
}

/** The trailers of a request that the application gets; it may treat them as headers. */
export type RequestTrailers = (
  upstream: Pick<Upstream, 'headers'>,
  incoming: Pick<IncomingMessage, 'rawTrailers'>,
) => Record<string, string[]>

const NOT_IN_TRAILERS = new Set([
  'authorization',
  'content-length',
  'content-type',
  'content-encoding',
  'content-range',
  // The rules have judged the paths by the headers.
  ...['depth', 'overwrite', 'new-uri'],
])

export function createRequestTrailers({
  settings,
  identitySource,
}: Pick<RequestHeadersOptions, 'settings' | 'identitySource'>): RequestTrailers {
  const headerOf = createHeaderPolicies(settings, identitySource.names)
  return ({ headers: configured }, { rawTrailers }) => {
    const kept: Record<string, string[]> = Object.create(null)
    for (let i = 0; i < rawTrailers.length; i += 2) {
      const { name, plain, policy } = headerOf(rawTrailers[i] as string, i / 2)
      if (policy !== 'kept' || NOT_IN_TRAILERS.has(plain) || configured?.names.has(plain)) continue
      kept[name.toLowerCase()] = [...(kept[name.toLowerCase()] ?? []), rawTrailers[i + 1] as string]
    }
    return kept
  }
}

/** Origin or Referer: an application that sees its own Host refuses forms and sockets of a page with another origin. */
function sentAddress(
  { sentOrigin, strippedPrefix }: Pick<Upstream, 'sentOrigin' | 'strippedPrefix'>,
  address: string,
  ownOrigin: string,
): string {
  if (sentOrigin === undefined || !address.startsWith(ownOrigin)) return address
  const rest = address.slice(ownOrigin.length)
  if (rest === '') return sentOrigin
  return rest.startsWith('/') ? sentOrigin + withoutPrefix(strippedPrefix, rest) : address
}

function forwardedFor(proxies: Networks | undefined, { address, headers }: ProxyRequest): string {
  const peer = plainAddress(address)
  const before = headers['x-forwarded-for']
  if (before === undefined || !isTrusted(proxies, address)) return peer
  return [...splitList(before), peer].join(', ')
}

/** Some providers (WeCom) give no token for the user, and one that is bound to our key (DPoP) is useless elsewhere. */
function bearerOf({ accessToken, dpopKey }: { accessToken: string; dpopKey?: string }): string | undefined {
  return accessToken && dpopKey === undefined ? `Bearer ${accessToken}` : undefined
}

// Headers that some application trusts to tell who a client is, where it comes from or what it asks for. None of them reaches an
// application: we send the truth under our own names.

interface Claims {
  /** What a client could do with them. */
  readonly reason: string
  /** In their plain form (see plainName); one that ends in `*` means all names that begin with it. */
  readonly names: readonly string[]
}

export const SPOOFABLE_HEADERS: readonly Claims[] = [
  {
    reason: 'the method: the application would perform another one than the rules checked',
    names: ['x-http-method*', 'x-method*', 'http-method*', 'method-override', 'real-method'],
  },
  {
    reason: 'the path or the URL: the application would serve a page that the rules did not check',
    names: [
      ...[
        'x-original*',
        'x-rewrite*',
        'x-override-*',
        'x-request-uri',
        'x-request-url',
        'x-path-info',
        'x-script-name',
      ],
      ...['request-uri', 'base-url', 'uri', 'url', 'script-name', 'path-info', 'x-waws-unencoded-url'],
      'x-ms-original-url',
    ],
  },
  {
    reason: 'the path, in internal headers of frameworks (Next.js routing, X-Sendfile of Rack)',
    names: ['x-middleware-*', 'x-invoke-*', 'x-matched-path', 'x-now-route-matches', 'x-accel-*', 'x-sendfile*'],
  },
  {
    reason: 'the host: links in password e-mails would lead to another site, and caches would store such pages',
    names: ['x-host*', 'x-http-*', 'x-backend-host', 'disguised-host', 'was-default-hostname', 'x-server-name'],
  },
  {
    reason: 'the proxy for the application’s own calls (httpoxy), and headers of particular proxies',
    names: ['proxy', 'proxy-*', 'x-proxy*', 'x-proxied-*', 'x-proxiedentities*', 'wl-proxy-*', '-ws*', 'http-*'],
  },
  {
    reason: 'the scheme: plain http would be treated as https, or redirects would loop',
    names: [
      ...['https', 'ssl', 'x-https', 'x-ssl', 'front-end-https', 'x-front-end-https', 'x-scheme', 'x-url-scheme'],
      ...['url-scheme', 'cf-visitor', 'x-client-scheme', 'x-client-proto*', 'clientprotocol'],
    ],
  },
  {
    reason: 'what a proxy reports about the original request: address, host, scheme, path, user',
    names: ['forwarded*', 'x-forwarded*', 'x-forward', 'x-forward-*', 'x-envoy-*', 'x-ms-proxy', 'x-ms-forwarded-*'],
  },
  {
    reason: 'the client address: rate limits, logs and pages for the internal network would be bypassed',
    names: [
      ...['x-real-*', 'real-ip', 'true-*', 'x-true-*', 'client-ip', 'x-client-ip', 'x-clientip', 'x-client-addr*'],
      ...['client-addr*', 'clientip', 'real-host', 'real-uri', 'real-url', 'real-user*'],
      ...['cluster-client-ip', 'x-cluster-client-ip', 'x-source-ip', 'source-ip', 'x-trusted-ip', 'x-originating*'],
      ...['x-custom-ip-authorization', 'x-coming-from', 'coming-from', 'x-ip', 'x-ip-address', 'x-client-port'],
    ],
  },
  {
    reason: 'the client address or country, as content delivery networks send them',
    names: [
      ...['cf-connecting-*', 'cf-pseudo-ipv4', 'cf-ip*', 'fastly-*', 'akamai-*', 'x-akamai-*', 'cloudfront-*'],
      ...['fly-*', 'x-vercel-*', 'x-nf-*', 'do-connecting-ip', 'x-sucuri-*', 'incap-*', 'x-azure-*', 'ali-cdn-*'],
      ...['cdn-src-ip', 'cdn-real-ip', 'x-cdn-src-ip', 'eo-connecting-ip', 'eo-client-*'],
    ],
  },
  {
    reason: 'the user, as web servers and single sign-on products send it (REMOTE_USER and similar)',
    names: [
      ...['remote-*', 'x-remote*', 'x-webauth-*', 'webauth-*', 'auth-user', 'auth-type', 'logon-user', 'x-sso-*'],
      ...['sso-*', 'iv-*', 'sm-*', 'smuser', 'oam-*', 'osso-*', 'shib-*', 'x-shib-*', 'eppn', 'persistent-id'],
      ...['targeted-id', 'affiliation', 'unscoped-affiliation', 'entitlement', 'cas-*', 'x-cas-*', 'mellon-*'],
      ...['oidc-*', 'x-oidc-*', 'saml-*', 'x-saml-*', 'ldap-*', 'x-ldap-*', 'x-iisnode-*', 'ms-aspnetcore-*'],
    ],
  },
  {
    reason: 'the user, as other forward-auth services and gateways send it',
    names: [
      ...['x-auth-*', 'x-authenticated*', 'x-authorized-*', 'x-authentik-*', 'x-authelia-*', 'x-vouch-*'],
      ...['x-pomerium-*', 'x-keycloak-*', 'x-token-*', 'x-consumer-*', 'x-credential-*', 'x-anonymous-consumer'],
      ...['x-jwt-payload*', 'x-jwt-claim*', 'x-jwt-assertion', 'x-claim*', 'x-endpoint-api-userinfo'],
      ...['x-apigateway-api-userinfo', 'x-rstudio-*', 'x-trino-*', 'x-presto-*', 'es-security-runas-user'],
      ...['grpc-metadata-*', 'grpcgateway-*', 'x-hasura-*', 'teleport-*', 'impersonate-*', 'x-impersonate*'],
      ...['x-scope-orgid', 'x-grafana-user', 'x-alfresco-remote-user', 'x-menshen-*'],
    ],
  },
  {
    reason: 'the user, as cloud load balancers and access proxies send it',
    names: [
      ...['x-ms-client-principal*', 'x-ms-token-*', 'x-goog-authenticated-user-*', 'x-goog-iap-*', 'x-appengine-*'],
      ...['x-cloudtasks-*', 'x-cloudscheduler*', 'x-amzn-oidc-*', 'x-amzn-mtls-*', 'cf-access-*', 'cf-worker'],
      ...['tailscale-*', 'x-arr-*', 'x-ambassador-*', 'x-wx-*'],
    ],
  },
  {
    reason: 'the user, under generic names that custom gateways use',
    names: [
      ...[
        'x-user',
        'x-user-*',
        'x-username',
        'x-userid',
        'x-userinfo',
        'x-login',
        'x-login-*',
        'x-logged-in-*',
        'x-principal*',
      ],
      ...['x-subject*', 'x-identity*', 'x-email', 'x-role', 'x-roles', 'x-group', 'x-groups', 'x-admin', 'x-is-admin'],
      ...['x-admin-user', 'x-on-behalf-of*', 'on-behalf-of*', 'x-act-as*', 'act-as*', 'php-auth-*', 'x-rest-user*'],
      ...['x-known-user*', 'user-email', 'user-role', 'user-roles', 'user-group', 'user-groups', 'user-login'],
      ...['user', 'user-id', 'user-key', 'user-name', 'userid', 'username', 'login-user', 'from-source'],
    ],
  },
  {
    reason: 'the client certificate, as a TLS-terminating proxy sends it',
    names: [
      ...['ssl-*', 'x-ssl-*', 'tls-client-*', 'x-tls-*', 'client-cert*', 'x-client-cert*', 'x-client-dn'],
      ...['x-client-s-dn', 'x-client-i-dn', 'x-client-verify', 'x-sap-webdisp-*'],
    ],
  },
]

/** They look similar, but clients send them to their own applications: credentials, which are checked, and preferences. */
export const HARMLESS_HEADERS: readonly string[] = [
  ...['x-auth-token', 'x-auth-key', 'x-auth-csrf*', 'x-login-token', 'x-user-token', 'x-user-agent', 'x-user-language'],
  'x-hasura-admin-secret',
  ...['x-user-locale', 'x-user-timezone', 'x-user-time-zone', 'x-middleware-prefetch'],
]

const isListed = matchHeaders(SPOOFABLE_HEADERS.flatMap(({ names }) => names))
const isExempt = matchHeaders(HARMLESS_HEADERS)

/** For a name in its plain form. */
export function isClaim(plain: string): boolean {
  return isListed(plain) && !isExempt(plain)
}

// Which of a browser's headers reach the application.

export interface KnownHeader {
  /** As it was sent. One string for all requests that have it, so that comparing it is cheap. */
  readonly name: string
  /** See plainName. */
  readonly plain: string
  /** `address` is Origin and Referer, `credentials` is Authorization, `filtered` is Cookie. */
  readonly policy: 'dropped' | 'kept' | 'address' | 'credentials' | 'destination' | 'filtered'
}

/** Browsers use a few dozen names; a client that makes up new ones must not fill the memory. */
const MAX_CACHED_NAMES = 1000
/** No browser sends this many. */
const MAX_COMPARED_HEADERS = 64

/** The name as it was sent, and its index in the request. */
export type HeaderLookup = (name: string, index: number) => KnownHeader

/** `identityNames` are the headers that tell the application who the user is. */
export function createHeaderPolicies(
  settings: Pick<Settings, 'DROP_HEADERS' | 'KEEP_HEADERS'>,
  identityNames: ReadonlySet<string>,
): HeaderLookup {
  const isNeverKept = matchHeaders([...ALWAYS_REMOVED, ...identityNames, ...(settings.DROP_HEADERS ?? [])])
  const isKept = matchHeaders(settings.KEEP_HEADERS ?? [])

  function decide(plain: string): KnownHeader['policy'] {
    if (isNeverKept(plain) || (isClaim(plain) && !isKept(plain))) return 'dropped'
    if (plain === 'origin' || plain === 'referer') return 'address'
    if (plain === 'authorization') return 'credentials'
    if (plain === 'destination') return 'destination'
    return plain === 'cookie' ? 'filtered' : 'kept'
  }

  const find = memoize(MAX_CACHED_NAMES, (name): KnownHeader => {
    const plain = plainName(name)
    return { name, plain, policy: decide(plain) }
  })

  // Most requests have the names of the request before, in the same order. Comparing two strings takes a fraction of a
  // lookup, for which V8 first interns every new string.
  const latest: KnownHeader[] = []
  return (name, index) => {
    const guess = latest[index]
    if (guess !== undefined && guess.name === name) return guess
    const header = find(name)
    if (index < MAX_COMPARED_HEADERS) latest[index] = header
    return header
  }
}
