// Headers by which some application believes a client about who it is, where it comes from or what it asks for. None of
// them reaches the application behind: what is true of them we say ourselves, under our own names.
import { matchHeaders } from '../../settings/header-names.ts'

interface Claims {
  /** What somebody could do with them. */
  readonly reason: string
  /** In their plain form (see plainName); one that ends in `*` stands for all that begin so. */
  readonly names: readonly string[]
}

export const CLAIMS: readonly Claims[] = [
  {
    reason: 'the method: a request that the rules saw as one would be carried out as another',
    names: ['x-http-method*', 'x-method*', 'http-method*', 'method-override'],
  },
  {
    reason: 'the path or the whole address: a page that the rules never saw would be served',
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
    reason: 'the path, said by the routing of one framework to itself (Next.js; files that Rack lets the server send)',
    names: ['x-middleware-*', 'x-invoke-*', 'x-matched-path', 'x-now-route-matches', 'x-accel-*', 'x-sendfile*'],
  },
  {
    reason: 'the host: links in mails for a new password would lead elsewhere, and caches keep such pages',
    names: ['x-host*', 'x-http-*', 'x-backend-host', 'disguised-host', 'was-default-hostname', 'x-server-name'],
  },
  {
    reason: 'the proxy that an application uses for its own calls (httpoxy), or what a proxy of some maker knows',
    names: ['proxy', 'proxy-*', 'x-proxy*', 'x-proxied-*', 'x-proxiedentities*', 'wl-proxy-*', '-ws*', 'http-*'],
  },
  {
    reason: 'the scheme: cookies and forms would count as safe, or redirects go round in circles',
    names: [
      ...['https', 'ssl', 'x-https', 'x-ssl', 'front-end-https', 'x-front-end-https', 'x-scheme', 'x-url-scheme'],
      ...['url-scheme', 'cf-visitor', 'x-client-scheme', 'x-client-proto*', 'clientprotocol'],
    ],
  },
  {
    reason: 'what a proxy says of the request before it: the address, the host, the scheme, the path, the user',
    names: ['forwarded*', 'x-forwarded*', 'x-forward', 'x-forward-*', 'x-envoy-*', 'x-ms-proxy', 'x-ms-forwarded-*'],
  },
  {
    reason: 'the address: limits, logs and pages for the own network would be stepped around',
    names: [
      ...['x-real-*', 'real-ip', 'true-*', 'x-true-*', 'client-ip', 'x-client-ip', 'x-clientip', 'x-client-addr*'],
      ...['cluster-client-ip', 'x-cluster-client-ip', 'x-source-ip', 'source-ip', 'x-trusted-ip', 'x-originating*'],
      ...['x-custom-ip-authorization', 'x-coming-from', 'coming-from', 'x-ip', 'x-ip-address', 'x-client-port'],
    ],
  },
  {
    reason: 'the address or the country, as a network for content delivery names them',
    names: [
      ...['cf-connecting-*', 'cf-pseudo-ipv4', 'cf-ip*', 'fastly-*', 'akamai-*', 'x-akamai-*', 'cloudfront-*'],
      ...['fly-*', 'x-vercel-*', 'x-nf-*', 'do-connecting-ip', 'x-sucuri-*', 'incap-*', 'x-azure-*', 'ali-cdn-*'],
      ...['cdn-src-ip', 'cdn-real-ip', 'x-cdn-src-ip', 'eo-connecting-ip', 'eo-client-*'],
    ],
  },
  {
    reason: 'the user, as servers and single sign-on in front of applications name them (REMOTE_USER and its kin)',
    names: [
      ...['remote-*', 'x-remote*', 'x-webauth-*', 'webauth-*', 'auth-user', 'auth-type', 'logon-user', 'x-sso-*'],
      ...['sso-*', 'iv-*', 'sm-*', 'smuser', 'oam-*', 'osso-*', 'shib-*', 'x-shib-*', 'eppn', 'persistent-id'],
      ...['targeted-id', 'affiliation', 'unscoped-affiliation', 'entitlement', 'cas-*', 'x-cas-*', 'mellon-*'],
      ...['oidc-*', 'x-oidc-*', 'saml-*', 'x-saml-*', 'ldap-*', 'x-ldap-*', 'x-iisnode-*', 'ms-aspnetcore-*'],
    ],
  },
  {
    reason: 'the user, as forward-auth and gateways of other makers name them',
    names: [
      ...['x-auth-*', 'x-authenticated*', 'x-authorized-*', 'x-authentik-*', 'x-authelia-*', 'x-vouch-*'],
      ...['x-pomerium-*', 'x-keycloak-*', 'x-token-*', 'x-consumer-*', 'x-credential-*', 'x-anonymous-consumer'],
      ...['x-jwt-payload*', 'x-jwt-claim*', 'x-jwt-assertion', 'x-claim*', 'x-endpoint-api-userinfo'],
      ...['x-apigateway-api-userinfo', 'x-rstudio-*', 'x-trino-user', 'x-presto-user', 'es-security-runas-user'],
      ...['impersonate-*', 'x-scope-orgid', 'x-grafana-user', 'x-alfresco-remote-user', 'x-menshen-*'],
    ],
  },
  {
    reason: 'the user, as the front door of a cloud names them',
    names: [
      ...['x-ms-client-principal*', 'x-ms-token-*', 'x-goog-authenticated-user-*', 'x-goog-iap-*', 'x-appengine-*'],
      ...['x-cloudtasks-*', 'x-cloudscheduler*', 'x-amzn-oidc-*', 'x-amzn-mtls-*', 'cf-access-*', 'cf-worker'],
      ...['tailscale-*', 'x-arr-*', 'x-ambassador-*', 'x-wx-*'],
    ],
  },
  {
    reason: 'the user, under the plain names that home-made gateways and services behind them use',
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
      ...['x-admin-user', 'x-on-behalf-of'],
      ...['user', 'user-id', 'user-key', 'user-name', 'userid', 'username', 'login-user', 'from-source'],
    ],
  },
  {
    reason: "the client's certificate, as whoever ends TLS names it",
    names: [
      ...['ssl-*', 'x-ssl-*', 'tls-client-*', 'x-tls-*', 'client-cert*', 'x-client-cert*', 'x-client-dn'],
      ...['x-client-s-dn', 'x-client-i-dn', 'x-client-verify', 'x-sap-webdisp-*'],
    ],
  },
]

/** They look alike, but pages send them to their own applications: credentials, which are checked, and preferences. */
export const NO_CLAIMS: readonly string[] = [
  ...['x-auth-token', 'x-auth-key', 'x-auth-csrf*', 'x-login-token', 'x-user-token', 'x-user-agent', 'x-user-language'],
  ...['x-user-locale', 'x-user-timezone', 'x-user-time-zone', 'x-middleware-prefetch'],
]

const isListed = matchHeaders(CLAIMS.flatMap(({ names }) => names))
const isExempt = matchHeaders(NO_CLAIMS)

/** For a name in its plain form. */
export function isClaim(plain: string): boolean {
  return isListed(plain) && !isExempt(plain)
}
