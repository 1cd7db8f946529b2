// Every setting: one row each with its name, kind, default and sentence, topic by topic. docs/settings.md is made from these
// rows.
import { IDENTITY_ROWS } from './identity-rows.ts'
import * as kind from './kinds.ts'
import { imageFile } from './look/image-file.ts'
import { color } from './look/shades.ts'
import { PROVIDER_ROWS } from './provider-rows.ts'
import { optional, type Row, required } from './row.ts'
import { UPSTREAM_ROWS } from './upstream-rows.ts'

type Rows = Readonly<Record<string, Row<unknown>>>

const ADDRESS_ROWS = {
  BASE_URL: required({
    ...kind.origin,
    default: 'http://localhost:3000',
    defaultNote: '`http://localhost:3000`, or with the port of `PORT` if only that is set',
    sentence:
      'The address that the browser sees. `/callback` is registered at the provider under it; with `providers` `/callback/<id>` at each.',
    sentenceZh:
      '浏览器看到的地址。身份认证平台上登记的回调地址是它下面的 `/callback`；使用 `providers` 时，各平台分别登记 `/callback/<id>`。',
  }),
  HOST: required({
    ...kind.host,
    default: '127.0.0.1',
    sentence: 'The address to listen on.',
    sentenceZh: '监听的地址。',
  }),
  PORT: optional({
    ...kind.port,
    example: '3000',
    defaultNote: 'the port of `BASE_URL` if that is loopback (with https only if there is a certificate), else 3000',
    sentence: 'The port to listen on.',
    sentenceZh: '监听的端口。',
  }),
  TLS_CERT_FILE: optional({
    ...kind.readableFile,
    sentence: 'Serves https without a proxy in front, with this certificate; read again when it changes.',
    sentenceZh: '用这个证书直接提供 https，不需要前面的代理；文件变化后会自动重新读取。',
  }),
  TLS_KEY_FILE: optional({ ...kind.readableFile, sentence: 'The key of the certificate.', sentenceZh: '证书的私钥。' }),
  TRUSTED_PROXIES: optional({
    ...kind.networks,
    sentence: 'Proxies in front whose `X-Forwarded-*` and `X-Original-*` headers count.',
    sentenceZh: '前面受信任的代理，只采信它们的 `X-Forwarded-*` 和 `X-Original-*` 请求头。',
  }),
  KEEP_ALIVE_TIMEOUT_MS: required({
    ...kind.wholeNumber(1000, 3_600_000, 'a number of milliseconds'),
    default: '90000',
    sentence:
      'How long a connection may wait for its next request. It has to be longer than the proxy in front keeps its own (usually 60 or 75 seconds): otherwise a request can meet a connection that is just being closed.',
    sentenceZh:
      '连接空闲多久后关闭。必须比前面代理自己的保持时间长（通常是 60 或 75 秒），否则请求可能遇到正在关闭的连接。',
  }),
} satisfies Rows

const SESSION_ROWS = {
  SECRET: optional({
    reloads: true,
    ...kind.secrets,
    defaultNote: 'derived from the client secret',
    sentence:
      'Our own secrets: the first seals and signs, all of them open. To replace one, put the new one in front; when every instance has it, take the old one away.',
    sentenceZh:
      '门神自己的密钥：第一个用于加密和签名，全部都可以解密。更换时把新的放在最前面，等所有实例都更新后再去掉旧的。',
  }),
  SECRET_FILE: optional({
    reloads: true,
    ...kind.secretsFile,
    sentence: 'Reads our own secrets from a file instead.',
    sentenceZh: '从文件读取门神自己的密钥。',
  }),
  STORE: required({
    ...kind.store,
    default: 'lmdb:./data',
    sentence:
      'Where sessions live: `memory:` forgets them at the end, `lmdb:DIRECTORY` keeps them on this machine, Redis or Valkey shares them between machines.',
    sentenceZh:
      '会话保存在哪里：`memory:` 保存在内存中，退出即丢失；`lmdb:DIRECTORY` 保存在本机；Redis 或 Valkey 供多台机器共用。',
  }),
  REFRESH_LEAD_SECONDS: required({
    ...kind.wholeNumber(1, 86_400, 'a number of seconds'),
    default: '300',
    sentence: 'A token is refreshed when it expires within this time.',
    sentenceZh: '令牌在这个时间内到期时续期。',
  }),
  REFRESH_FAILURE: required({
    ...kind.oneOf(['clear', 'keep'], 'keep'),
    default: 'clear',
    sentence:
      '`clear` ends the session when a refresh fails, as the specification says; `keep` lets it live while its token is valid, unless the provider says `invalid_grant` or `invalid_token`.',
    sentenceZh:
      '`clear` 按规范在续期失败时结束会话；`keep` 在令牌仍有效时保留会话，除非平台返回 `invalid_grant` 或 `invalid_token`。',
  }),
  SESSION_MAX_HOURS: required({
    ...kind.wholeNumber(1, 8_760, 'a number of hours'),
    default: '168',
    sentence: 'A session that keeps refreshing still ends after this time.',
    sentenceZh: '一直续期的会话，到这个时间也会结束。',
  }),
  SESSION_CACHE_SIZE: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of sessions'),
    default: '100000',
    sentence: 'How many opened sessions a process keeps in memory at most; the store is still asked about each.',
    sentenceZh: '每个进程在内存中最多保留多少个已打开的会话；每次请求仍会向存储确认。',
  }),
  SESSION_CACHE_MB: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number of megabytes'),
    default: '256',
    sentence:
      'How much memory they may take, with Redis together with their records, and at most a third of what Node may use. An ordinary session takes about 1 KB, another one with the signed JWT for each application (of the last four), and its tokens if they are long.',
    sentenceZh:
      '这些会话最多占用多少内存（使用 Redis 时连同会话记录），且不超过 Node 可用内存的三分之一。普通会话约 1 KB；每个应用的签名 JWT（最近四个）各约 1 KB；令牌较长时另计。',
  }),
} satisfies Rows

const PAGE_ROWS = {
  APP_NAME: required({
    reloads: true,
    ...kind.text('a name of at most 60 characters', '采购平台', 60),
    default: '统一登录',
    sentence: 'The name shown on the pages.',
    sentenceZh: '页面上显示的名称。',
  }),
  PAGE_LANGUAGE: required({
    reloads: true,
    ...kind.pageLanguage,
    default: 'zh-CN',
    sentence:
      'The language of the pages: `zh-CN`, `en`, one of [`languages`](words.md), or `auto` (the browser’s, else zh-CN).',
    sentenceZh: '页面的语言：`zh-CN`、`en`、[`languages`](words.md) 中的一种，或 `auto`（跟随浏览器，否则为 zh-CN）。',
  }),
  LOGO_FILE: optional({
    reloads: true,
    ...imageFile,
    defaultNote: 'ours',
    sentence: 'The mark at the top of the pages and in the browser’s tab ([your own look](look.md)).',
    sentenceZh: '页面顶部和浏览器标签上的标志（[自定义外观](look.md)）。',
  }),
  ACCENT_COLOR: optional({
    reloads: true,
    ...color,
    defaultNote: 'ours',
    sentence:
      'The colour of buttons and links. Where it could not be read on the light or the dark pages, a darker or lighter shade of it is used there.',
    sentenceZh: '按钮和链接的颜色。在浅色或深色页面上看不清时，会自动使用更深或更浅的色调。',
  }),
} satisfies Rows

const OBSERVING_ROWS = {
  LOG_LEVEL: required({
    ...kind.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'warn'),
    default: 'info',
    sentence: 'Which events reach the log.',
    sentenceZh: '写入日志的最低级别。',
  }),
  LOG_FORMAT: required({
    ...kind.oneOf(['auto', 'json', 'pretty'], 'json'),
    default: 'auto',
    sentence:
      '`auto` writes lines for people on a terminal and JSON everywhere else; `json` and `pretty` always the same.',
    sentenceZh: '`auto` 在终端上输出便于阅读的文字，其他情况输出 JSON；`json` 和 `pretty` 固定为一种格式。',
  }),
  ACCESS_LOG: required({
    ...kind.yesOrNo,
    default: 'false',
    sentence: 'One line in the log for each request, after it has ended ([its fields](events.md#the-access-log)).',
    sentenceZh: '每个请求结束后在日志中写一行（[字段](events.md#the-access-log)）。',
  }),
  AUDIT_KEEP: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of events'),
    default: '10000',
    sentence:
      'How many events of the [audit trail](audit.md) the store keeps, of all processes and machines; when there are more, the kind of event that has most lets go of its oldest. 0 keeps none.',
    sentenceZh:
      '存储中保留多少条[审计记录](audit.md)，所有进程和机器合计；超出时，从数量最多的一类事件中删除最早的。0 表示不保留。',
  }),
  AUDIT_FILE: optional({
    ...kind.appendableFile,
    sentence: 'A file for every event of the audit trail, as lines of JSON; opened again on SIGHUP.',
    sentenceZh: '把每条审计记录以 JSON 行写入这个文件；收到 SIGHUP 时重新打开。',
  }),
  METRICS_FROM: required({
    ...kind.networksOrNone,
    default: '127.0.0.0/8,::1',
    sentence:
      'Who may read `/_menshen/metrics` ([monitoring](monitoring.md)), by the address of the connection and never through a proxy: whatever carries `X-Forwarded-*` or `Forwarded`, or comes from `TRUSTED_PROXIES`, is refused. `none` turns it off.',
    sentenceZh:
      '哪些地址可以读取 `/_menshen/metrics`（[监控](monitoring.md)），以连接的来源地址为准，不能经过代理：带有 `X-Forwarded-*` 或 `Forwarded`、或来自 `TRUSTED_PROXIES` 的请求一律拒绝。`none` 表示关闭。',
  }),
} satisfies Rows

const RUNNING_ROWS = {
  WORKERS: required({
    ...kind.wholeNumber(1, 256, 'a number of processes'),
    default: '1',
    sentence: 'Processes on this machine that share the port and the store (`lmdb:` or Redis).',
    sentenceZh: '本机上共用端口和存储（`lmdb:` 或 Redis）的进程数。',
  }),
  RATE_LIMIT_PER_MINUTE: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number'),
    default: '600',
    sentence: 'Sign-in requests per address and minute (a whole office can share one address); 0 turns the limit off.',
    sentenceZh: '每个地址每分钟的登录请求数上限（整个办公室可能共用一个地址）；0 表示不限制。',
  }),
  CONFIG: optional({
    ...kind.text('the path of a file', 'config/menshen.config.ts'),
    defaultNote: '`./menshen.config.{ts,mts,js,mjs}`, if there is one',
    sentence:
      'The file of the structured settings: rules, upstreams, [words](words.md). One that is named here has to be there.',
    sentenceZh: '结构化配置文件：访问规则、后端应用、[文字](words.md)。在这里写明的文件必须存在。',
  }),
  NODE_ENV: optional({
    ...kind.text('development, dev or test; anything else means production', 'production'),
    defaultNote: 'development',
    sentence:
      'In production there is no development provider, plain http is refused beyond this machine, and `/_menshen/ready` wants the settings of the provider.',
    sentenceZh: '生产环境没有开发用的身份认证平台，本机以外拒绝使用明文 http，`/_menshen/ready` 要求平台的设置齐全。',
  }),
  ALLOW_PLAIN_HTTP: required({
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'Lets a production start use plain http addresses that are not loopback. Tokens and cookies can be read on the way.',
    sentenceZh: '允许生产环境使用非本机的明文 http 地址。令牌和 Cookie 在传输途中可能被读取。',
  }),
  ALLOW_UNVERIFIED_EMAIL: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'Lets an e-mail address count as username and e-mail that the provider [has not verified](providers.md#e-mail-addresses). Whoever can write any address at the provider can then take the name of another.',
    sentenceZh:
      '允许把身份认证平台[未验证的邮箱](providers.md#e-mail-addresses)用作用户名和邮箱。如果用户可以在平台上随意填写邮箱，就可能冒用他人的名字。',
  }),
  DEV_PROVIDER_PORT: required({
    ...kind.port,
    default: '3001',
    sentence: 'The port of the development provider.',
    sentenceZh: '开发用的身份认证平台的端口。',
  }),
} satisfies Rows

/** In the order in which people meet them. */
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
