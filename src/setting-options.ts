// The settings as options of createMenshen: `BASE_URL` is `baseUrl`. `npm run docs` writes the interface from the rows of
// src/config/settings.ts, with the descriptions that editors show.

import type { OptionType } from './config/kinds.ts'
import type { SecretReference } from './config/secret-references.ts'
import type { CheckedSettings, Name } from './config/settings.ts'

export function optionName(setting: string): string {
  return setting.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** These two are more than text here: `provider` and `config`. */
export const SPECIAL_SETTINGS: readonly string[] = ['PROVIDER', 'CONFIG'] satisfies Name[]

/** Secrets, and addresses with a password: `{ env: 'NAME' }` or `{ file: 'PATH' }` is accepted in place of the text. */
export const SECRET_SETTINGS: readonly string[] = ['CLIENT_SECRET', 'SECRET', 'STORE'] satisfies Name[]

/** The type in the setting's row. Values that are objects to us are text here, as in the environment. */
type OptionValue<T> =
  | {
      number: number
      boolean: boolean
      string: [T] extends [string | undefined] ? NonNullable<T> : string
    }[OptionType<T>]
  | undefined

/** Every setting in camelCase. */
export interface SettingOptions {
  /**
   * The address that browsers use. Register `CALLBACK_PATH` below it at the provider; with `providers`, register
   * `CALLBACK_PATH/<id>` at each. Expected: an http or https address without a path, for example
   * `https://app.example.com`. Default: `http://localhost:3000`, or with the port of `PORT` if only that is set.
   */
  readonly baseUrl?: OptionValue<CheckedSettings['BASE_URL']>
  /**
   * The path of the login page. Change it if the application has its own `/login`, which then belongs to the
   * application. Expected: a path of letters, digits, dots and dashes that begins with / and does not end with it,
   * without a query or a pattern, other than / and the other routes of Menshen, for example `/_menshen/login`. Default:
   * `/login`.
   */
  readonly loginPath?: OptionValue<CheckedSettings['LOGIN_PATH']>
  /**
   * The path to which the provider redirects the browser. The redirect URI registered at the provider must match it.
   * Expected: a path of letters, digits, dots and dashes that begins with / and does not end with it, without a query
   * or a pattern, other than / and the other routes of Menshen, for example `/_menshen/callback`. Default: `/callback`.
   */
  readonly callbackPath?: OptionValue<CheckedSettings['CALLBACK_PATH']>
  /**
   * The path for signing out. Expected: a path of letters, digits, dots and dashes that begins with / and does not end
   * with it, without a query or a pattern, other than / and the other routes of Menshen, for example
   * `/_menshen/logout`. Default: `/logout`.
   */
  readonly logoutPath?: OptionValue<CheckedSettings['LOGOUT_PATH']>
  /**
   * The address to listen on. Expected: an address or a name of this machine, without a scheme or a port, for example
   * `0.0.0.0`. Default: `127.0.0.1`.
   */
  readonly host?: OptionValue<CheckedSettings['HOST']>
  /**
   * The port to listen on. Expected: a port from 1 to 65535, for example `3000`. Default: the port of `BASE_URL` if
   * that is loopback (with https only if there is a certificate), else 3000.
   */
  readonly port?: OptionValue<CheckedSettings['PORT']>
  /**
   * Serves https with this certificate, without a proxy in front. Reloaded when it changes. Expected: the path of a
   * readable file, for example `/etc/menshen/file.pem`. Default: none.
   */
  readonly tlsCertFile?: OptionValue<CheckedSettings['TLS_CERT_FILE']>
  /**
   * The key of the certificate. Expected: the path of a readable file, for example `/etc/menshen/file.pem`. Default:
   * none.
   */
  readonly tlsKeyFile?: OptionValue<CheckedSettings['TLS_KEY_FILE']>
  /**
   * With `TLS_CERT_FILE`: offers HTTP/2 in addition to HTTP/1.1. Expected: true or false, for example `true`. Default:
   * `true`.
   */
  readonly http2?: OptionValue<CheckedSettings['HTTP2']>
  /**
   * How long browsers use only https for this host (`Strict-Transport-Security: max-age`), with an https `BASE_URL`
   * that is not loopback. An application’s own header is kept. 0 does not send it; browsers that have received it keep
   * it until it expires. Expected: a number of seconds from 0 to 63072000, for example `300`. Default: `31536000`.
   */
  readonly hstsMaxAge?: OptionValue<CheckedSettings['HSTS_MAX_AGE']>
  /**
   * Proxies in front whose `X-Forwarded-*` and `X-Original-*` headers are trusted. Expected: addresses or networks,
   * separated by commas, for example `127.0.0.1,10.0.0.0/8`. Default: none.
   */
  readonly trustedProxies?: OptionValue<CheckedSettings['TRUSTED_PROXIES']>
  /**
   * The maximum size of a request's head (first line, headers and cookies), beyond which it gets 431, and of an
   * application's response head, beyond which it becomes 502. A request with more than 200 header fields always gets
   * 431. Expected: a number of kilobytes from 4 to 1024, for example `16`. Default: `16`.
   */
  readonly maxHeaderKb?: OptionValue<CheckedSettings['MAX_HEADER_KB']>
  /**
   * How long an idle connection is kept open. It must be longer than the keep-alive of the proxy in front (usually 60
   * or 75 seconds); otherwise a request can reach a connection that is being closed. Expected: a number of milliseconds
   * from 1000 to 3600000, for example `90000`. Default: `90000`.
   */
  readonly keepAliveTimeoutMs?: OptionValue<CheckedSettings['KEEP_ALIVE_TIMEOUT_MS']>
  /**
   * The name on the button: `使用 <name> 登录`, `Continue with <name>`. Expected: a name of at most 60 characters, for
   * example `企业账号`. Default: the preset’s, in the language of the page.
   */
  readonly providerName?: OptionValue<CheckedSettings['PROVIDER_NAME']>
  /**
   * Values for the variables in the preset’s addresses, such as a realm or a tenant. Expected: pairs of name=value,
   * separated by commas, for example `realm=staff`. Default: none.
   */
  readonly providerVars?: OptionValue<CheckedSettings['PROVIDER_VARS']>
  /**
   * The address of the identity provider, to which its paths are added. Expected: an http or https address without a
   * query, for example `https://idp.example.com`. Default: none.
   */
  readonly authUrl?: OptionValue<CheckedSettings['AUTH_URL']>
  /**
   * The OAuth client identifier. Expected: the identifier that the provider gave to this application, for example
   * `my-application`. Default: none.
   */
  readonly clientId?: OptionValue<CheckedSettings['CLIENT_ID']>
  /**
   * The OAuth client secret. It leaves the server only in requests to the provider. Expected: the secret that the
   * provider gave to this application, for example `a-long-random-string`. Default: none.
   */
  readonly clientSecret?: OptionValue<CheckedSettings['CLIENT_SECRET']> | SecretReference
  /**
   * Reads the client secret from a file instead. Expected: the path of a readable file with the secret on one line, for
   * example `/run/secrets/client_secret`. Default: none.
   */
  readonly clientSecretFile?: OptionValue<CheckedSettings['CLIENT_SECRET_FILE']>
  /**
   * How the client authenticates to the provider: with its secret, a signature, or its certificate (mutual TLS).
   * Expected: post, basic, private_key_jwt, tls_client_auth, self_signed_tls_client_auth or none, for example `basic`.
   * Default: the preset’s.
   */
  readonly clientAuth?: OptionValue<CheckedSettings['CLIENT_AUTH']>
  /**
   * The private key for `private_key_jwt` or for the mutual TLS certificate: PEM or JWK, not encrypted. It can replace
   * the client secret. Expected: the path of a readable file that is not empty, for example
   * `/run/secrets/client_key.pem`. Default: none.
   */
  readonly clientKeyFile?: OptionValue<CheckedSettings['CLIENT_KEY_FILE']>
  /**
   * The `kid` of the `private_key_jwt` key at the provider. Expected: the name of a key, for example `key-2026`.
   * Default: the key’s own, if it is a JWK.
   */
  readonly clientKeyId?: OptionValue<CheckedSettings['CLIENT_KEY_ID']>
  /**
   * The certificate of that key, in PEM. Mutual TLS presents it to the provider; with `private_key_jwt` its thumbprint
   * is sent as `x5t#S256`, which Microsoft Entra requires. Expected: the path of a readable file that is not empty, for
   * example `/run/secrets/client_cert.pem`. Default: none.
   */
  readonly clientCertFile?: OptionValue<CheckedSettings['CLIENT_CERT_FILE']>
  /**
   * The `aud` of `private_key_jwt`: the issuer, the token endpoint, or both. Expected: issuer, token_endpoint or both,
   * for example `token_endpoint`. Default: `token_endpoint` for `entra` and `okta`, else `issuer`.
   */
  readonly clientAssertionAudience?: OptionValue<CheckedSettings['CLIENT_ASSERTION_AUDIENCE']>
  /**
   * The signature algorithm of `private_key_jwt`. Expected: RS256, PS256, ES256, EdDSA, Ed25519, RS384, PS384, ES384,
   * RS512, PS512 or ES512, for example `PS256`. Default: by the key and what the provider accepts; `PS256` for `entra`.
   */
  readonly clientAssertionAlgorithm?: OptionValue<CheckedSettings['CLIENT_ASSERTION_ALGORITHM']>
  /**
   * The requested scope. Expected: scopes, separated by spaces, for example `openid profile email`. Default: the
   * preset’s.
   */
  readonly scope?: OptionValue<CheckedSettings['SCOPE']>
  /**
   * `suffix` checks only the end of the state, as the specification says; `bound` requires the state of an attempt that
   * the same browser started, once. Recommended: `bound`. Expected: suffix or bound, for example `bound`. Default:
   * `suffix` for `idaas`, else `bound`.
   */
  readonly stateCheck?: OptionValue<CheckedSettings['STATE_CHECK']>
  /**
   * `S256` adds PKCE to the authorization and token requests, if the provider supports it. Like `bound`, it requires an
   * attempt that the same browser started. Expected: off or S256, for example `S256`. Default: `off` for `idaas`, else
   * what the provider is known to support.
   */
  readonly pkce?: OptionValue<CheckedSettings['PKCE']>
  /**
   * Pushed authorization requests (RFC 9126): all parameters go from server to server, and the browser carries only a
   * reference. `auto` uses them if the metadata has `require_pushed_authorization_requests`. Expected: auto, on or off,
   * for example `on`. Default: `auto`.
   */
  readonly par?: OptionValue<CheckedSettings['PAR']>
  /**
   * Binds the tokens of each session to a key (RFC 9449), so that a stolen token cannot be used. `auto` does so once
   * the provider requires it. `on` cannot be combined with `FORWARD_ACCESS_TOKEN`. Expected: auto, on or off, for
   * example `on`. Default: `auto`.
   */
  readonly dpop?: OptionValue<CheckedSettings['DPOP']>
  /**
   * How the provider is notified of a sign-out: `server` calls it, `browser` redirects the browser through it and back
   * to `LOGIN_PATH`, `none` does not notify it. Expected: server, browser or none, for example `browser`. Default:
   * `server` for `idaas`, else what the provider has.
   */
  readonly logoutStyle?: OptionValue<CheckedSettings['LOGOUT_STYLE']>
  /**
   * The provider's logout endpoint: a path below `AUTH_URL`, or a full URL. Expected: a path at the provider, or a
   * whole address, for example `/public/sp/slo/APP_ID`. Default: `/oauth/logout` for `idaas`, else what the provider
   * has.
   */
  readonly logoutUrl?: OptionValue<CheckedSettings['LOGOUT_URL']>
  /**
   * Whether unused tokens are revoked at the provider, if it has a revocation endpoint: after a sign-out, an idle
   * timeout, or a sign-in that fails or replaces a session. At some providers (Google, older Keycloak, some Auth0
   * tenants) this ends the user’s sessions on every device. Expected: always or never, for example `always`. Default:
   * `never`, unless the provider is known to end only this session.
   */
  readonly revoke?: OptionValue<CheckedSettings['REVOKE']>
  /**
   * The timeout of one call to the provider, including the response body. Expected: a number of milliseconds from 100
   * to 120000, for example `5000`. Default: `5000`.
   */
  readonly providerTimeoutMs?: OptionValue<CheckedSettings['PROVIDER_TIMEOUT_MS']>
  /**
   * The maximum number of concurrent sign-ins, and of concurrent refreshes, at the provider. Others wait. Expected: a
   * number of calls from 1 to 10000, for example `64`. Default: `64`.
   */
  readonly providerParallelCalls?: OptionValue<CheckedSettings['PROVIDER_PARALLEL_CALLS']>
  /**
   * The provider's issuer: an `iss` in the callback must be this one (RFC 9207). Expected: what the provider calls
   * itself, for example `https://idp.example.com`. Default: none.
   */
  readonly issuer?: OptionValue<CheckedSettings['ISSUER']>
  /**
   * The provider sends `iss` with every callback (`authorization_response_iss_parameter_supported` in its metadata): a
   * callback without it is rejected. Expected: true or false, for example `true`. Default: `false`.
   */
  readonly issuerRequired?: OptionValue<CheckedSettings['ISSUER_REQUIRED']>
  /**
   * The address of the provider’s public keys. Together with `ISSUER` it enables back-channel logout. Expected: an http
   * or https address without a query, for example `https://idp.example.com`. Default: none.
   */
  readonly jwksUrl?: OptionValue<CheckedSettings['JWKS_URL']>
  /**
   * Menshen's own secrets. The first one encrypts and signs, all of them decrypt. To rotate, put the new one first;
   * remove the old one when every instance has the new one. Expected: one or more secrets of at least 32 characters,
   * separated by commas or lines, for example `the output of openssl rand -base64 32`. Default: derived from the client
   * secret.
   */
  readonly secret?: OptionValue<CheckedSettings['SECRET']> | SecretReference
  /**
   * Reads Menshen's own secrets from a file instead. Expected: the path of a readable file with secrets of at least 32
   * characters, one per line, for example `/run/secrets/menshen_secret`. Default: none.
   */
  readonly secretFile?: OptionValue<CheckedSettings['SECRET_FILE']>
  /**
   * Where sessions are stored: `memory:` loses them on exit, `sqlite:FILE` keeps them on this machine, Redis shares
   * them between machines. Expected: memory:, sqlite:FILE, redis://…, redis+sentinel://… or redis+cluster://…, with
   * rediss in place of redis for TLS, for example `sqlite:./data/menshen.db`. Default: `sqlite:./data/menshen.db`.
   */
  readonly store?: OptionValue<CheckedSettings['STORE']> | SecretReference
  /**
   * A token is refreshed when it expires within this time. Expected: a number of seconds from 1 to 86400, for example
   * `300`. Default: `300`.
   */
  readonly refreshLeadSeconds?: OptionValue<CheckedSettings['REFRESH_LEAD_SECONDS']>
  /**
   * `keep` keeps the session when the provider is unreachable; only a rejection (`invalid_grant`, `invalid_token`) ends
   * it. `clear` ends the session whenever a refresh fails. Expected: clear or keep, for example `keep`. Default:
   * `keep`; `clear` for `idaas`.
   */
  readonly refreshFailure?: OptionValue<CheckedSettings['REFRESH_FAILURE']>
  /**
   * `always` fetches the user again after each token refresh, so that user info, groups and role stay current, at the
   * cost of one more call. `never` keeps them as they were at sign-in. Expected: always or never, for example `always`.
   * Default: `always`; `never` for `idaas`.
   */
  readonly identityRefresh?: OptionValue<CheckedSettings['IDENTITY_REFRESH']>
  /**
   * The maximum lifetime of a session after sign-in, even if it is refreshed. Expected: a number of hours from 1 to
   * 8760, for example `168`. Default: `168`.
   */
  readonly sessionMaxHours?: OptionValue<CheckedSettings['SESSION_MAX_HOURS']>
  /**
   * A session expires after this time without activity, accurate to a quarter of it; 0 for never. Polling, event
   * streams and WebSockets are not activity. Expected: a number of minutes from 0 to 525600, for example `30`. Default:
   * `0`.
   */
  readonly sessionIdleMinutes?: OptionValue<CheckedSettings['SESSION_IDLE_MINUTES']>
  /**
   * The maximum number of concurrent sessions per user. A sign-in beyond that ends the oldest one; 0 for no limit.
   * Expected: a number of sessions from 0 to 10000, for example `3`. Default: `0`.
   */
  readonly sessionsPerUser?: OptionValue<CheckedSettings['SESSIONS_PER_USER']>
  /**
   * The maximum lifetime of a new personal key. Existing keys are unchanged. Expected: a number of days from 1 to 3660,
   * for example `90`. Default: `366`.
   */
  readonly personalKeyMaxDays?: OptionValue<CheckedSettings['PERSONAL_KEY_MAX_DAYS']>
  /**
   * Binds a session to the device it was opened on, if the browser supports it: a stolen cookie does not work on
   * another device. Requires an https `BASE_URL`; cannot be combined with `hosts`. Expected: off or on, for example
   * `on`. Default: `off`.
   */
  readonly deviceBoundSessions?: OptionValue<CheckedSettings['DEVICE_BOUND_SESSIONS']>
  /**
   * The time limit for signing in at the provider, from the login page to the callback. A later response starts the
   * sign-in again. Expected: a number of minutes from 1 to 1440, for example `30`. Default: `30`.
   */
  readonly attemptMinutes?: OptionValue<CheckedSettings['ATTEMPT_MINUTES']>
  /**
   * `on` sends visitors of a protected page straight to the provider, without the login page; `in-app` does so only
   * inside the WeCom, Feishu and DingTalk apps (exceptions). Expected: off, on or in-app, for example `on`. Default:
   * `off`.
   */
  readonly autoSignIn?: OptionValue<CheckedSettings['AUTO_SIGN_IN']>
  /**
   * The maximum number of decrypted sessions that a process keeps in memory. Each request still checks the store.
   * Expected: a number of sessions from 0 to 10000000, for example `100000`. Default: `100000`.
   */
  readonly sessionCacheSize?: OptionValue<CheckedSettings['SESSION_CACHE_SIZE']>
  /**
   * The maximum memory for these sessions (with Redis, including their records), up to a third of what Node may use. A
   * typical session takes about 1 KB, plus about 1 KB for the signed JWT of each application (the last four), plus its
   * tokens if they are long. Expected: a number of megabytes from 0 to 1000000, for example `256`. Default: `256`.
   */
  readonly sessionCacheMb?: OptionValue<CheckedSettings['SESSION_CACHE_MB']>
  /**
   * The application behind the gateway. Without it Menshen serves its own small home page. Expected: an http, https or
   * h2c address without a path, or unix:/path/of/socket, for example `http://127.0.0.1:8080`. Default: none.
   */
  readonly upstream?: OptionValue<CheckedSettings['UPSTREAM']>
  /**
   * The `Host` that the application receives: the one the browser sent, or its own (when to change it). Expected:
   * browser or upstream, for example `upstream`. Default: `browser`.
   */
  readonly upstreamHostHeader?: OptionValue<CheckedSettings['UPSTREAM_HOST_HEADER']>
  /**
   * A certificate authority for https applications. Expected: the path of a readable file, for example
   * `/etc/menshen/file.pem`. Default: none.
   */
  readonly upstreamCaFile?: OptionValue<CheckedSettings['UPSTREAM_CA_FILE']>
  /**
   * The maximum number of ordinary requests that a process has in progress at an application. One user can use all of
   * them; while a user holds many, up to a quarter more are reserved for users who hold few. Expected: a number of
   * connections from 1 to 100000, for example `256`. Default: `256`.
   */
  readonly upstreamConnections?: OptionValue<CheckedSettings['UPSTREAM_CONNECTIONS']>
  /**
   * How many more requests can wait for a busy application; others get 503 immediately. Users are served in turn. When
   * the queue is full, the user with the most waiting requests loses one. Expected: a number of requests from 0 to
   * 100000, for example `1024`. Default: `1024`.
   */
  readonly upstreamQueue?: OptionValue<CheckedSettings['UPSTREAM_QUEUE']>
  /**
   * How long a request waits for a busy application before it gets 503. Expected: a number of milliseconds from 100 to
   * 600000, for example `5000`. Default: `5000`.
   */
  readonly upstreamQueueTimeoutMs?: OptionValue<CheckedSettings['UPSTREAM_QUEUE_TIMEOUT_MS']>
  /**
   * The maximum number of WebSockets, event streams, and responses or bodies that wait for their client, per process
   * and application, on top of `UPSTREAM_CONNECTIONS`. Beyond it, the user who holds the most loses one. Expected: a
   * number of streams from 1 to 100000, for example `4096`. Default: `4096`.
   */
  readonly upstreamStreams?: OptionValue<CheckedSettings['UPSTREAM_STREAMS']>
  /**
   * The timeout for connecting to the application. Expected: a number of milliseconds from 100 to 600000, for example
   * `5000`. Default: `5000`.
   */
  readonly upstreamConnectTimeoutMs?: OptionValue<CheckedSettings['UPSTREAM_CONNECT_TIMEOUT_MS']>
  /**
   * The timeout for the application to start its response. Expected: a number of milliseconds from 100 to 86400000, for
   * example `60000`. Default: `60000`.
   */
  readonly upstreamHeadersTimeoutMs?: OptionValue<CheckedSettings['UPSTREAM_HEADERS_TIMEOUT_MS']>
  /**
   * How long a response may pause before it is treated as failed; 0 for no limit. Expected: a number of milliseconds
   * from 0 to 86400000, for example `300000`. Default: `300000`.
   */
  readonly upstreamIdleTimeoutMs?: OptionValue<CheckedSettings['UPSTREAM_IDLE_TIMEOUT_MS']>
  /**
   * Disconnects a client that reads nothing of the response, or sends nothing of the request body, for this long. Also
   * the time limit for a body sent to one of Menshen's own addresses. Expected: a number of milliseconds from 100 to
   * 86400000, for example `30000`. Default: `30000`.
   */
  readonly clientTimeoutMs?: OptionValue<CheckedSettings['CLIENT_TIMEOUT_MS']>
  /**
   * The header with the username. Expected: the name of a header that begins with X-, of letters, digits and dashes,
   * for example `X-Forwarded-User`. Default: `x-forwarded-user`.
   */
  readonly identityUser?: OptionValue<CheckedSettings['IDENTITY_USER']>
  /**
   * The header with the e-mail address. Expected: the name of a header that begins with X-, of letters, digits and
   * dashes, for example `X-Forwarded-User`. Default: `x-forwarded-email`.
   */
  readonly identityEmail?: OptionValue<CheckedSettings['IDENTITY_EMAIL']>
  /**
   * The header with the nickname, in percent-encoded UTF-8. Expected: the name of a header that begins with X-, of
   * letters, digits and dashes, for example `X-Forwarded-User`. Default: `x-forwarded-preferred-username`.
   */
  readonly identityName?: OptionValue<CheckedSettings['IDENTITY_NAME']>
  /**
   * The header with the role. Expected: the name of a header that begins with X-, of letters, digits and dashes, for
   * example `X-Forwarded-User`. Default: `x-forwarded-role`.
   */
  readonly identityRole?: OptionValue<CheckedSettings['IDENTITY_ROLE']>
  /**
   * The header with the provider’s groups, separated by commas (a comma within a name is `%2C`); absent if there are
   * none. Expected: the name of a header that begins with X-, of letters, digits and dashes, for example
   * `X-Forwarded-User`. Default: `x-forwarded-groups`.
   */
  readonly identityGroups?: OptionValue<CheckedSettings['IDENTITY_GROUPS']>
  /**
   * The header with a short-lived signed JWT; its public keys are at `/_menshen/jwks.json`. `none` signs nothing, for
   * applications that do not check it. Expected: the name of a header that begins with X-, of letters, digits and
   * dashes, or none, for example `X-Forwarded-User`. Default: `x-menshen-assertion`.
   */
  readonly identityAssertion?: OptionValue<CheckedSettings['IDENTITY_ASSERTION']>
  /**
   * The audience of the signed JWT for the upstream application. `upstreams` have their own. Expected: what the
   * application calls itself, at most 200 characters, for example `wiki`. Default: the address in `UPSTREAM`; with
   * forward-auth `CLIENT_ID`.
   */
  readonly assertionAudience?: OptionValue<CheckedSettings['ASSERTION_AUDIENCE']>
  /**
   * Also sends the access token to the application behind the gateway, as `Authorization: Bearer`. Responses to
   * forward-auth never contain it. Expected: true or false, for example `true`. Default: `false`.
   */
  readonly forwardAccessToken?: OptionValue<CheckedSettings['FORWARD_ACCESS_TOKEN']>
  /**
   * Browser headers to remove before a request reaches the application, in addition to the list. Overrides
   * `KEEP_HEADERS`. Expected: names of headers, separated by commas; a * at the end matches every name that starts with
   * it, for example `x-company-user,x-internal-*`. Default: none.
   */
  readonly dropHeaders?: OptionValue<CheckedSettings['DROP_HEADERS']>
  /**
   * Headers of that list to pass to the application. Any client can forge them. Expected: names of headers, separated
   * by commas; a * at the end matches every name that starts with it, for example `x-user-id,x-http-method-override`.
   * Default: none.
   */
  readonly keepHeaders?: OptionValue<CheckedSettings['KEEP_HEADERS']>
  /**
   * The required audience (`aud`) of an access token that a machine sends where a rule has `bearer`. A rule’s
   * `audience` overrides it. Expected: whole names of audiences, separated by commas, for example
   * `https://api.example.com,my-application`. Default: the client’s identifier and `BASE_URL`.
   */
  readonly bearerAudience?: OptionValue<CheckedSettings['BEARER_AUDIENCE']>
  /**
   * The name shown on the pages. Expected: a name of at most 60 characters, for example `采购平台`. Default: `统一登录`.
   */
  readonly appName?: OptionValue<CheckedSettings['APP_NAME']>
  /**
   * The language of the pages: `zh-CN`, `en`, one of `languages`, or `auto` (the browser’s, else zh-CN). Expected:
   * zh-CN, en, auto, or a name from languages in the configuration, for example `en`. Default: `zh-CN`.
   */
  readonly pageLanguage?: OptionValue<CheckedSettings['PAGE_LANGUAGE']>
  /**
   * The logo at the top of the pages and in the browser tab (customizing). Expected: the path of an image of at most
   * 256 KB: PNG, JPEG, WebP, or SVG with drawings only (no scripts, links, animations or references), for example
   * `/etc/menshen/logo.svg`. Default: ours.
   */
  readonly logoFile?: OptionValue<CheckedSettings['LOGO_FILE']>
  /**
   * The support contact, shown as a link on every error page. Expected: an e-mail address, or an http or https address,
   * for example `helpdesk@example.com`. Default: none.
   */
  readonly supportContact?: OptionValue<CheckedSettings['SUPPORT_CONTACT']>
  /**
   * The colour of buttons and links. If it is hard to read on light or dark pages, a darker or lighter shade is used.
   * Expected: a colour as #rrggbb, for example `#1f5fbf`. Default: ours.
   */
  readonly accentColor?: OptionValue<CheckedSettings['ACCENT_COLOR']>
  /**
   * The lowest level that is logged. Expected: trace, debug, info, warn, error, fatal or silent, for example `warn`.
   * Default: `info`.
   */
  readonly logLevel?: OptionValue<CheckedSettings['LOG_LEVEL']>
  /**
   * `auto` writes readable lines on a terminal and JSON everywhere else; `json` and `pretty` always use that format.
   * Expected: auto, json or pretty, for example `json`. Default: `auto`.
   */
  readonly logFormat?: OptionValue<CheckedSettings['LOG_FORMAT']>
  /**
   * Logs one line per completed request (fields). Expected: true or false, for example `true`. Default: `false`.
   */
  readonly accessLog?: OptionValue<CheckedSettings['ACCESS_LOG']>
  /**
   * How many events of the audit trail the store keeps, for all processes and machines together. Beyond that, the
   * oldest event of the most frequent kind is deleted. 0 keeps none. Expected: a number of events from 0 to 10000000,
   * for example `10000`. Default: `10000`.
   */
  readonly auditKeep?: OptionValue<CheckedSettings['AUDIT_KEEP']>
  /**
   * A file to which every audit event is appended as a JSON line; reopened on SIGHUP. Expected: the path of a file that
   * this user can write to, or can create in an existing folder, for example `/var/log/menshen/audit.jsonl`. Default:
   * none.
   */
  readonly auditFile?: OptionValue<CheckedSettings['AUDIT_FILE']>
  /**
   * The addresses that may read `/_menshen/metrics` (monitoring), by direct connection only: a request with
   * `X-Forwarded-*` or `Forwarded`, or from `TRUSTED_PROXIES`, is rejected. `none` turns metrics off. Expected:
   * addresses or networks, separated by commas, or none, for example `127.0.0.1,10.1.2.3`. Default: `127.0.0.0/8,::1`.
   */
  readonly metricsFrom?: OptionValue<CheckedSettings['METRICS_FROM']>
  /**
   * The number of processes on this machine that share the port and the store (`sqlite:` or Redis). Expected: a number
   * of processes from 1 to 256, for example `1`. Default: `1`.
   */
  readonly workers?: OptionValue<CheckedSettings['WORKERS']>
  /**
   * The maximum number of sign-in requests per address and minute (an entire office can share one address); 0 for no
   * limit. Expected: a number from 0 to 1000000, for example `600`. Default: `600`.
   */
  readonly rateLimitPerMinute?: OptionValue<CheckedSettings['RATE_LIMIT_PER_MINUTE']>
  /**
   * In production, there is no development provider, plain http is rejected except on this machine, and
   * `/_menshen/ready` requires the provider settings. Expected: development, dev or test; anything else means
   * production, for example `production`. Default: development.
   */
  readonly nodeEnv?: OptionValue<CheckedSettings['NODE_ENV']>
  /**
   * Allows plain http addresses that are not loopback in production. Tokens and cookies can be intercepted. Expected:
   * true or false, for example `true`. Default: `false`.
   */
  readonly allowPlainHttp?: OptionValue<CheckedSettings['ALLOW_PLAIN_HTTP']>
  /**
   * Accepts e-mail addresses that the provider has not verified as username and e-mail. A user who can edit their
   * address at the provider can then impersonate someone else. Expected: true or false, for example `true`. Default:
   * `false`.
   */
  readonly allowUnverifiedEmail?: OptionValue<CheckedSettings['ALLOW_UNVERIFIED_EMAIL']>
  /**
   * The port of the development provider. Expected: a port from 1 to 65535, for example `3001`. Default: `3001`.
   */
  readonly devProviderPort?: OptionValue<CheckedSettings['DEV_PROVIDER_PORT']>
}
