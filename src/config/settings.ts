// Every setting: one row each with its name, kind, default and description in both languages, topic by topic. docs/settings.md is
// generated from these rows.

import { color } from './accent-color.ts'
import { imageFile } from './image-file.ts'
import type { Row } from './kinds.ts'
import * as kind from './kinds.ts'
import { ISSUER_FIELDS, SIGN_IN_FIELDS, settingRows } from './provider-fields.ts'

export type { Row } from './kinds.ts'

const optional = <T>(row: Row<T>): Row<T | undefined> => row
/** A setting that always has a value. Without an example, the default is the example. */
const required = <T>(row: Omit<Row<T>, 'example'> & { default: string; example?: string }): Row<T> => ({
  ...row,
  example: row.example ?? row.default,
})

// The identity provider. The settings that fill a field of it have their rows in provider-fields.ts.

export const PROVIDER_ROWS = {
  ...settingRows(SIGN_IN_FIELDS),
  PROVIDER_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 120_000, 'a number of milliseconds'),
    default: '5000',
    description: 'The timeout of one call to the provider, including the response body.',
    descriptionZh: '每次调用身份认证平台的时限，包括读取响应内容。',
  }),
  PROVIDER_PARALLEL_CALLS: required({
    ...kind.wholeNumber(1, 10_000, 'a number of calls'),
    default: '64',
    description:
      'The maximum number of concurrent sign-ins, and of concurrent refreshes, at the provider. Others wait.',
    descriptionZh: '同时向身份认证平台发起的登录数和续期数的上限，超出的排队等候。',
  }),
  ...settingRows(ISSUER_FIELDS),
} satisfies Record<string, Row<unknown>>

// The upstream application: its address, limits and deadlines.

export const UPSTREAM_ROWS = {
  UPSTREAM: optional({
    reloads: true,
    ...kind.upstream,
    description: 'The application behind the gateway. Without it Menshen serves its own small home page.',
    descriptionZh: '门神保护的后端应用。未设置时，显示门神自带的首页。',
  }),
  UPSTREAM_HOST_HEADER: required({
    reloads: true,
    ...kind.oneOf(['browser', 'upstream'], 'upstream'),
    default: 'browser',
    description:
      'The `Host` that the application receives: the one the browser sent, or its own ([when to change it](behind-a-proxy.md#what-the-application-thinks-its-address-is)).',
    descriptionZh:
      '后端应用看到的 `Host`：浏览器发来的，或应用自己的地址（[何时需要更改](behind-a-proxy.md#what-the-application-thinks-its-address-is)）。',
  }),
  UPSTREAM_CA_FILE: optional({
    reloads: true,
    ...kind.readableFile,
    description: 'A certificate authority for https applications.',
    descriptionZh: 'https 后端应用使用的 CA 证书。',
  }),
  UPSTREAM_CONNECTIONS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of connections'),
    default: '256',
    description:
      'The maximum number of ordinary requests that a process has in progress at an application. One user can use all of them; while a user holds many, up to a quarter more are reserved for users who hold few.',
    descriptionZh:
      '每个进程同时交给一个后端应用的普通请求数上限。一个用户可以全部占用；有用户占用较多时，另有最多四分之一的名额留给占用较少的用户。',
  }),
  UPSTREAM_QUEUE: required({
    reloads: true,
    ...kind.wholeNumber(0, 100_000, 'a number of requests'),
    default: '1024',
    description:
      'How many more requests can wait for a busy application; others get 503 immediately. Users are served in turn. When the queue is full, the user with the most waiting requests loses one.',
    descriptionZh:
      '后端应用繁忙时最多有多少个请求排队，超出的立即返回 503。各用户轮流处理；队列已满时，排队最多的用户会失去一个位置。',
  }),
  UPSTREAM_QUEUE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    description: 'How long a request waits for a busy application before it gets 503.',
    descriptionZh: '后端应用繁忙时，请求最多排队多久，之后返回 503。',
  }),
  UPSTREAM_STREAMS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of streams'),
    default: '4096',
    description:
      'The maximum number of WebSockets, event streams, and responses or bodies that wait for their client, per process and application, on top of `UPSTREAM_CONNECTIONS`. Beyond it, the user who holds the most loses one.',
    descriptionZh:
      '除 `UPSTREAM_CONNECTIONS` 之外，每个进程与一个后端应用之间的 WebSocket、事件流以及等待客户端收发的请求数上限；超出时，占用最多的一方会断开一个。',
  }),
  UPSTREAM_CONNECT_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    description: 'The timeout for connecting to the application.',
    descriptionZh: '连接后端应用的时限。',
  }),
  UPSTREAM_HEADERS_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '60000',
    description: 'The timeout for the application to start its response.',
    descriptionZh: '后端应用开始响应的时限。',
  }),
  UPSTREAM_IDLE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(0, 86_400_000, 'a number of milliseconds'),
    default: '300000',
    description: 'How long a response may pause before it is treated as failed; 0 for no limit.',
    descriptionZh: '响应中断多久视为失败；0 表示不限。',
  }),
  CLIENT_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '30000',
    description:
      "Disconnects a client that reads nothing of the response, or sends nothing of the request body, for this long. Also the time limit for a body sent to one of Menshen's own addresses.",
    descriptionZh:
      '客户端在此时间内既不读取响应、也不发送请求体，或向门神自身的地址发送请求体超过此时间，连接会被断开。',
  }),
} satisfies Record<string, Row<unknown>>

// What an application is told about its users, and which headers of the browser it gets.

/** Removed from requests even if nothing is signed, because a client must not send it. */
export const ASSERTION_HEADER = 'x-menshen-assertion'

export const IDENTITY_ROWS = {
  IDENTITY_USER: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-user',
    description: 'The header with the username.',
    descriptionZh: '把用户名传给后端应用的请求头。',
  }),
  IDENTITY_EMAIL: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-email',
    description: 'The header with the e-mail address.',
    descriptionZh: '传递邮箱的请求头。',
  }),
  IDENTITY_NAME: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-preferred-username',
    description: 'The header with the nickname, in percent-encoded UTF-8.',
    descriptionZh: '传递昵称的请求头，UTF-8 百分号编码。',
  }),
  IDENTITY_ROLE: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-role',
    description: 'The header with the role.',
    descriptionZh: '传递角色的请求头。',
  }),
  IDENTITY_GROUPS: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-groups',
    description:
      'The header with the provider’s groups, separated by commas (a comma within a name is `%2C`); absent if there are none.',
    descriptionZh: '传递身份认证平台用户组的请求头，以逗号分隔（组名中的逗号写作 `%2C`）；没有用户组时不发送。',
  }),
  IDENTITY_ASSERTION: required({
    reloads: true,
    ...kind.headerNameOrNone,
    default: ASSERTION_HEADER,
    description:
      'The header with a short-lived signed JWT; its public keys are at `/_menshen/jwks.json`. `none` signs nothing, for applications that do not check it.',
    descriptionZh:
      '传递短期签名 JWT 的请求头，公钥在 `/_menshen/jwks.json`。设为 `none` 则不签名，适合不校验签名的应用。',
  }),
  ASSERTION_AUDIENCE: optional({
    reloads: true,
    ...kind.audience,
    defaultNote: 'the address in `UPSTREAM`; with forward-auth `CLIENT_ID`',
    description: 'The audience of the signed JWT for the upstream application. `upstreams` have their own.',
    descriptionZh: '给后端应用的签名 JWT 的受众（aud）。`upstreams` 各有自己的设置。',
  }),
  FORWARD_ACCESS_TOKEN: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    description:
      'Also sends the access token to the application behind the gateway, as `Authorization: Bearer`. Responses to [forward-auth](behind-a-proxy.md#forward-auth) never contain it.',
    descriptionZh:
      '同时以 `Authorization: Bearer` 把访问令牌传给网关后面的应用。[forward-auth](behind-a-proxy.md#forward-auth) 的响应不带访问令牌。',
  }),
  DROP_HEADERS: optional({
    reloads: true,
    ...kind.headerNames,
    description:
      'Browser headers to remove before a request reaches the application, in addition to [the list](behind-a-proxy.md#what-does-not-reach-the-application). Overrides `KEEP_HEADERS`.',
    descriptionZh:
      '除[列表](behind-a-proxy.md#what-does-not-reach-the-application)之外，不能传给后端应用的浏览器请求头。优先于 `KEEP_HEADERS`。',
  }),
  KEEP_HEADERS: optional({
    reloads: true,
    ...kind.headerNames,
    example: 'x-user-id,x-http-method-override',
    description: 'Headers of that list to pass to the application. Any client can forge them.',
    descriptionZh: '列表中允许传给后端应用的请求头。请注意任何客户端都可以伪造其内容。',
  }),
  BEARER_AUDIENCE: optional({
    reloads: true,
    ...kind.audiences,
    defaultNote: 'the client’s identifier and `BASE_URL`',
    description:
      'The required audience (`aud`) of an access token that a machine sends where a rule has [`bearer`](rules.md#machines). A rule’s `audience` overrides it.',
    descriptionZh:
      '规则中写有 [`bearer`](rules.md#machines) 的路径，机器发送的访问令牌的受众（`aud`）必须与此一致。规则的 `audience` 优先。',
  }),
} satisfies Record<string, Row<unknown>>

// Everything else.

type Rows = Readonly<Record<string, Row<unknown>>>

const ADDRESS_ROWS = {
  BASE_URL: required({
    ...kind.origin,
    default: 'http://localhost:3000',
    defaultNote: '`http://localhost:3000`, or with the port of `PORT` if only that is set',
    description:
      'The address that browsers use. Register `CALLBACK_PATH` below it at the provider; with `providers`, register `CALLBACK_PATH/<id>` at each.',
    descriptionZh:
      '浏览器访问的地址。身份认证平台上登记的回调地址是该地址下的 `CALLBACK_PATH`；使用 `providers` 时，各平台分别登记 `CALLBACK_PATH/<id>`。',
  }),
  LOGIN_PATH: required({
    ...kind.ownPath('/_menshen/login'),
    default: '/login',
    description:
      'The path of the login page. Change it if the application has its own `/login`, which then belongs to the application.',
    descriptionZh: '登录页的路径。应用也有 `/login` 时可以改用其他路径，原来的路径归应用使用。',
  }),
  CALLBACK_PATH: required({
    ...kind.ownPath('/_menshen/callback'),
    default: '/callback',
    description:
      'The path to which the provider redirects the browser. The redirect URI registered at the provider must match it.',
    descriptionZh: '身份认证平台让浏览器返回的路径，平台上登记的回调地址随之改变。',
  }),
  LOGOUT_PATH: required({
    ...kind.ownPath('/_menshen/logout'),
    default: '/logout',
    description: 'The path for signing out.',
    descriptionZh: '退出登录的路径。',
  }),
  HOST: required({
    ...kind.host,
    default: '127.0.0.1',
    description: 'The address to listen on.',
    descriptionZh: '监听的地址。',
  }),
  PORT: optional({
    ...kind.port,
    example: '3000',
    defaultNote: 'the port of `BASE_URL` if that is loopback (with https only if there is a certificate), else 3000',
    description: 'The port to listen on.',
    descriptionZh: '监听的端口。',
  }),
  TLS_CERT_FILE: optional({
    ...kind.readableFile,
    description: 'Serves https with this certificate, without a proxy in front. Reloaded when it changes.',
    descriptionZh: '用此证书直接提供 https，不需要前面的代理；文件变化后会自动重新读取。',
  }),
  TLS_KEY_FILE: optional({
    ...kind.readableFile,
    description: 'The key of the certificate.',
    descriptionZh: '证书的私钥。',
  }),
  HTTP2: required({
    ...kind.yesOrNo,
    default: 'true',
    description: 'With `TLS_CERT_FILE`: offers HTTP/2 in addition to HTTP/1.1.',
    descriptionZh: '设置 `TLS_CERT_FILE` 后，除 HTTP/1.1 外，对支持的客户端使用 HTTP/2。',
  }),
  HSTS_MAX_AGE: required({
    reloads: true,
    ...kind.wholeNumber(0, 63_072_000, 'a number of seconds'),
    default: '31536000',
    example: '300',
    description:
      'How long browsers use only https for this host (`Strict-Transport-Security: max-age`), with an https `BASE_URL` that is not loopback. An application’s own header is kept. 0 does not send it; browsers that have received it keep it until it expires.',
    descriptionZh:
      '浏览器在多长时间内只用 https 访问本主机（`Strict-Transport-Security: max-age`），仅当 `BASE_URL` 是 https 且不是本机地址时发送。应用自己发送的响应头保持不变。0 表示不发送；已收到的浏览器会保留到期满为止。',
  }),
  TRUSTED_PROXIES: optional({
    ...kind.networks,
    description: 'Proxies in front whose `X-Forwarded-*` and `X-Original-*` headers are trusted.',
    descriptionZh: '前面受信任的代理，只采信这些代理的 `X-Forwarded-*` 和 `X-Original-*` 请求头。',
  }),
  MAX_HEADER_KB: required({
    ...kind.wholeNumber(4, 1024, 'a number of kilobytes'),
    default: '16',
    description:
      "The maximum size of a request's head (first line, headers and cookies), beyond which it gets 431, and of an application's response head, beyond which it becomes 502. A request with more than 200 header fields always gets 431.",
    descriptionZh:
      '请求头（请求行、各个头部和 Cookie）的上限，超出时返回 431；后端应用的响应头超出时返回 502。请求头超过 200 个字段时一律返回 431。',
  }),
  KEEP_ALIVE_TIMEOUT_MS: required({
    ...kind.wholeNumber(1000, 3_600_000, 'a number of milliseconds'),
    default: '90000',
    description:
      'How long an idle connection is kept open. It must be longer than the keep-alive of the proxy in front (usually 60 or 75 seconds); otherwise a request can reach a connection that is being closed.',
    descriptionZh:
      '连接空闲多久后关闭。必须比前面代理的保持时间长（通常是 60 或 75 秒），否则请求可能遇到正在关闭的连接。',
  }),
} satisfies Rows

const SESSION_ROWS = {
  SECRET: optional({
    reloads: true,
    ...kind.secrets,
    defaultNote: 'derived from the client secret',
    description:
      "Menshen's own secrets. The first one encrypts and signs, all of them decrypt. To rotate, put the new one first; remove the old one when every instance has the new one.",
    descriptionZh:
      '门神的密钥：第一个用于加密和签名，全部都可用于解密。更换时把新的放在最前面，等所有实例都更新后再去掉旧的。',
  }),
  SECRET_FILE: optional({
    reloads: true,
    ...kind.secretsFile,
    description: "Reads Menshen's own secrets from a file instead.",
    descriptionZh: '从文件读取门神的密钥。',
  }),
  STORE: required({
    ...kind.store,
    default: 'sqlite:./data/menshen.db',
    description:
      'Where sessions are stored: `memory:` loses them on exit, `sqlite:FILE` keeps them on this machine, Redis shares them between machines.',
    descriptionZh:
      '会话保存在哪里：`memory:` 保存在内存中，进程停止即丢失；`sqlite:FILE` 保存在本机；Redis 供多台机器共用。',
  }),
  REFRESH_LEAD_SECONDS: required({
    ...kind.wholeNumber(1, 86_400, 'a number of seconds'),
    default: '300',
    description: 'A token is refreshed when it expires within this time.',
    descriptionZh: '令牌在到期前多久续期。',
  }),
  REFRESH_FAILURE: optional({
    ...kind.oneOf(['clear', 'keep'], 'keep'),
    defaultNote: '`keep`; `clear` for `idaas`',
    description:
      '`keep` keeps the session when the provider is unreachable; only a rejection (`invalid_grant`, `invalid_token`) ends it. `clear` ends the session whenever a refresh fails.',
    descriptionZh:
      '`keep` 在无法连接身份认证平台时保留会话，只有平台明确拒绝（`invalid_grant`、`invalid_token`）才结束；`clear` 只要续期失败就结束会话。',
  }),
  IDENTITY_REFRESH: optional({
    ...kind.oneOf(['always', 'never'], 'always'),
    defaultNote: '`always`; `never` for `idaas`',
    description:
      '`always` fetches the user again after each token refresh, so that user info, groups and role stay current, at the cost of one more call. `never` keeps them as they were at sign-in.',
    descriptionZh:
      '`always` 在每次令牌续期后重新向身份认证平台查询用户：用户信息、用户组和角色随之更新，但会多一次调用。`never` 保持登录时的内容。',
  }),
  SESSION_MAX_HOURS: required({
    ...kind.wholeNumber(1, 8_760, 'a number of hours'),
    default: '168',
    description: 'The maximum lifetime of a session after sign-in, even if it is refreshed.',
    descriptionZh: '会话从登录起最长持续的时间，到时即使还能续期也会结束。',
  }),
  SESSION_IDLE_MINUTES: required({
    reloads: true,
    ...kind.wholeNumber(0, 525_600, 'a number of minutes'),
    default: '0',
    example: '30',
    description:
      'A session expires after this time without activity, [accurate to a quarter of it](configuring.md#when-sessions-end); 0 for never. Polling, event streams and WebSockets are not activity.',
    descriptionZh:
      '会话在此时间内没有操作就会结束，[误差不超过其四分之一](configuring.md#when-sessions-end)；0 表示不限制。轮询、事件流和 WebSocket 不算操作。',
  }),
  SESSIONS_PER_USER: required({
    reloads: true,
    ...kind.wholeNumber(0, 10_000, 'a number of sessions'),
    default: '0',
    example: '3',
    description:
      'The maximum number of concurrent sessions per user. A sign-in beyond that ends the oldest one; 0 for no limit.',
    descriptionZh: '每个用户最多同时有多少个会话：超出后，新的登录会结束最早的会话；0 表示不限制。',
  }),
  PERSONAL_KEY_MAX_DAYS: required({
    reloads: true,
    ...kind.wholeNumber(1, 3_660, 'a number of days'),
    default: '366',
    example: '90',
    description: 'The maximum lifetime of a new [personal key](rules.md#keys). Existing keys are unchanged.',
    descriptionZh: '用户新建[个人密钥](rules.md#keys)时可以选择的最长有效期。已有的密钥不受影响。',
  }),
  DEVICE_BOUND_SESSIONS: required({
    reloads: true,
    ...kind.oneOf(['off', 'on'], 'on'),
    default: 'off',
    description:
      'Binds a session to the device it was opened on, [if the browser supports it](device-bound-sessions.md): a stolen cookie does not work on another device. Requires an https `BASE_URL`; cannot be combined with `hosts`.',
    descriptionZh:
      '在[浏览器支持时](device-bound-sessions.md)把会话绑定到登录的设备：Cookie 被复制到其他设备后无法使用。要求 `BASE_URL` 为 https，且不能与 `hosts` 同时使用。',
  }),
  ATTEMPT_MINUTES: required({
    ...kind.wholeNumber(1, 1_440, 'a number of minutes'),
    default: '30',
    description:
      'The time limit for signing in at the provider, from the login page to the callback. A later response [starts the sign-in again](configuring.md#a-response-that-comes-late).',
    descriptionZh:
      '从离开登录页到回调，用户在身份认证平台登录的时限。超时返回的登录会[重新开始](configuring.md#a-response-that-comes-late)。',
  }),
  AUTO_SIGN_IN: required({
    reloads: true,
    ...kind.oneOf(['off', 'on', 'in-app'], 'on'),
    default: 'off',
    description:
      '`on` sends visitors of a protected page straight to the provider, without the login page; `in-app` does so only inside the WeCom, Feishu and DingTalk apps ([exceptions](configuring.md#sign-in-without-a-click)).',
    descriptionZh:
      '`on` 让访问受保护页面的访客直接前往身份认证平台，不显示登录页；`in-app` 仅在企业微信、飞书、钉钉的应用内这样做（[例外情况](configuring.md#sign-in-without-a-click)）。',
  }),
  SESSION_CACHE_SIZE: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of sessions'),
    default: '100000',
    description:
      'The maximum number of decrypted sessions that a process keeps in memory. Each request still checks the store.',
    descriptionZh: '每个进程在内存中最多缓存多少个已解密的会话；每次请求仍会向存储确认。',
  }),
  SESSION_CACHE_MB: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number of megabytes'),
    default: '256',
    description:
      'The maximum memory for these sessions (with Redis, including their records), up to a third of what Node may use. A typical session takes about 1 KB, plus about 1 KB for the signed JWT of each application (the last four), plus its tokens if they are long.',
    descriptionZh:
      '这些会话最多占用多少内存（使用 Redis 时连同会话记录），且不超过 Node 可用内存的三分之一。普通会话约 1 KB；每个应用的签名 JWT（最近四个）各约 1 KB；较长的令牌另计。',
  }),
} satisfies Rows

const PAGE_ROWS = {
  APP_NAME: required({
    reloads: true,
    ...kind.text('a name of at most 60 characters', '采购平台', 60),
    default: '统一登录',
    description: 'The name shown on the pages.',
    descriptionZh: '页面上显示的名称。',
  }),
  PAGE_LANGUAGE: required({
    reloads: true,
    ...kind.pageLanguage,
    default: 'zh-CN',
    description:
      'The language of the pages: `zh-CN`, `en`, one of [`languages`](customizing.md), or `auto` (the browser’s, else zh-CN).',
    descriptionZh:
      '页面的语言：`zh-CN`、`en`、[`languages`](customizing.md) 中的一种，或 `auto`（跟随浏览器，否则为 zh-CN）。',
  }),
  LOGO_FILE: optional({
    reloads: true,
    ...imageFile,
    defaultNote: 'ours',
    description: 'The logo at the top of the pages and in the browser tab ([customizing](customizing.md)).',
    descriptionZh: '页面顶部和浏览器标签上的标志（[自定义外观](customizing.md)）。',
  }),
  SUPPORT_CONTACT: optional({
    reloads: true,
    ...kind.contact,
    description: 'The support contact, shown as a link on every error page.',
    descriptionZh: '用户求助的联系方式，以链接形式显示在每个错误页面上。',
  }),
  ACCENT_COLOR: optional({
    reloads: true,
    ...color,
    defaultNote: 'ours',
    description:
      'The colour of buttons and links. If it is hard to read on light or dark pages, a darker or lighter shade is used.',
    descriptionZh: '按钮和链接的颜色。在浅色或深色页面上看不清时，会自动使用更深或更浅的色调。',
  }),
} satisfies Rows

const OBSERVING_ROWS = {
  LOG_LEVEL: required({
    ...kind.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'warn'),
    default: 'info',
    description: 'The lowest level that is logged.',
    descriptionZh: '写入日志的最低级别。',
  }),
  LOG_FORMAT: required({
    ...kind.oneOf(['auto', 'json', 'pretty'], 'json'),
    default: 'auto',
    description:
      '`auto` writes readable lines on a terminal and JSON everywhere else; `json` and `pretty` always use that format.',
    descriptionZh: '`auto` 在终端上输出便于阅读的文字，其他情况输出 JSON；`json` 和 `pretty` 固定为一种格式。',
  }),
  ACCESS_LOG: required({
    ...kind.yesOrNo,
    default: 'false',
    description: 'Logs one line per completed request ([fields](logging.md#the-access-log)).',
    descriptionZh: '每个请求结束后在日志中写一行（[字段](logging.md#the-access-log)）。',
  }),
  AUDIT_KEEP: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of events'),
    default: '10000',
    description:
      'How many events of the [audit trail](logging.md#the-audit-trail) the store keeps, for all processes and machines together. Beyond that, the oldest event of the most frequent kind is deleted. 0 keeps none.',
    descriptionZh:
      '存储中保留多少条[审计记录](logging.md#the-audit-trail)，所有进程和机器合计；超出时，从数量最多的一类事件中删除最早的。0 表示不保留。',
  }),
  AUDIT_FILE: optional({
    ...kind.appendableFile,
    description: 'A file to which every audit event is appended as a JSON line; reopened on SIGHUP.',
    descriptionZh: '把每条审计记录以 JSON 行写入此文件；收到 SIGHUP 时重新打开。',
  }),
  METRICS_FROM: required({
    ...kind.networksOrNone,
    default: '127.0.0.0/8,::1',
    description:
      'The addresses that may read `/_menshen/metrics` ([monitoring](monitoring.md)), by direct connection only: a request with `X-Forwarded-*` or `Forwarded`, or from `TRUSTED_PROXIES`, is rejected. `none` turns metrics off.',
    descriptionZh:
      '哪些地址可以读取 `/_menshen/metrics`（[监控](monitoring.md)），以连接的来源地址为准，不能经过代理：带有 `X-Forwarded-*` 或 `Forwarded`、或来自 `TRUSTED_PROXIES` 的请求一律拒绝。`none` 表示关闭。',
  }),
} satisfies Rows

const RUNNING_ROWS = {
  WORKERS: required({
    ...kind.wholeNumber(1, 256, 'a number of processes'),
    default: '1',
    description: 'The number of processes on this machine that share the port and the store (`sqlite:` or Redis).',
    descriptionZh: '本机上共用端口和存储（`sqlite:` 或 Redis）的进程数。',
  }),
  RATE_LIMIT_PER_MINUTE: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number'),
    default: '600',
    description:
      'The maximum number of sign-in requests per address and minute (an entire office can share one address); 0 for no limit.',
    descriptionZh: '每个地址每分钟的登录请求数上限（整个办公室可能共用一个地址）；0 表示不限制。',
  }),
  CONFIG: optional({
    ...kind.text('the path of a file', 'config/menshen.config.ts'),
    defaultNote: '`./menshen.config.{ts,mts,js,mjs,yaml,yml,json}`, if there is one',
    description:
      'The configuration file: rules, upstreams, [words](customizing.md), in code or [as data](configuring.md#yaml-and-json). If set, the file must exist.',
    descriptionZh: '结构化配置文件：访问规则、后端应用、[文字](customizing.md)。在这里写明的文件必须存在。',
  }),
  NODE_ENV: optional({
    ...kind.text('development, dev or test; anything else means production', 'production'),
    defaultNote: 'development',
    description:
      'In production, there is no development provider, plain http is rejected except on this machine, and `/_menshen/ready` requires the provider settings.',
    descriptionZh:
      '生产环境没有开发用的身份认证平台，本机以外拒绝使用明文 http，`/_menshen/ready` 要求平台的设置齐全。',
  }),
  ALLOW_PLAIN_HTTP: required({
    ...kind.yesOrNo,
    default: 'false',
    description:
      'Allows plain http addresses that are not loopback in production. Tokens and cookies can be intercepted.',
    descriptionZh: '允许生产环境使用非本机的明文 http 地址。令牌和 Cookie 在传输途中可能被读取。',
  }),
  ALLOW_UNVERIFIED_EMAIL: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    description:
      'Accepts e-mail addresses that the provider [has not verified](providers.md#e-mail-addresses) as username and e-mail. A user who can edit their address at the provider can then impersonate someone else.',
    descriptionZh:
      '允许把身份认证平台[未验证的邮箱](providers.md#e-mail-addresses)用作用户名和邮箱。如果用户可以在平台上随意填写邮箱，就可能冒充他人。',
  }),
  DEV_PROVIDER_PORT: required({
    ...kind.port,
    default: '3001',
    description: 'The port of the development provider.',
    descriptionZh: '开发用身份认证平台的端口。',
  }),
} satisfies Rows

/** In the order of the documentation. */
export const TOPICS = {
  address: ADDRESS_ROWS,
  provider: PROVIDER_ROWS,
  session: SESSION_ROWS,
  upstream: UPSTREAM_ROWS,
  identity: IDENTITY_ROWS,
  pages: PAGE_ROWS,
  observing: OBSERVING_ROWS,
  running: RUNNING_ROWS,
}

export type Topic = keyof typeof TOPICS
export const TOPIC_NAMES = Object.keys(TOPICS) as Topic[]

export const SETTINGS = {
  ...ADDRESS_ROWS,
  ...PROVIDER_ROWS,
  ...SESSION_ROWS,
  ...UPSTREAM_ROWS,
  ...IDENTITY_ROWS,
  ...PAGE_ROWS,
  ...OBSERVING_ROWS,
  ...RUNNING_ROWS,
}

export type Name = keyof typeof SETTINGS

export function isSetting(name: string): name is Name {
  return Object.hasOwn(SETTINGS, name)
}

export type CheckedSettings = { readonly [K in Name]: (typeof SETTINGS)[K] extends Row<infer T> ? T : never }

export type Settings = CheckedSettings & { readonly PORT: number }

export type Environment = Readonly<Record<string, string | undefined>>
