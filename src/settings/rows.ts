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
  }),
  HOST: required({ ...kind.host, default: '127.0.0.1', sentence: 'The address to listen on.' }),
  PORT: optional({
    ...kind.port,
    example: '3000',
    defaultNote: 'the port of `BASE_URL` if that is loopback (with https only if there is a certificate), else 3000',
    sentence: 'The port to listen on.',
  }),
  TLS_CERT_FILE: optional({
    ...kind.readableFile,
    sentence: 'Serves https without a proxy in front, with this certificate; read again when it changes.',
  }),
  TLS_KEY_FILE: optional({ ...kind.readableFile, sentence: 'The key of the certificate.' }),
  TRUSTED_PROXIES: optional({
    ...kind.networks,
    sentence: 'Proxies in front whose `X-Forwarded-*` and `X-Original-*` headers count.',
  }),
  KEEP_ALIVE_TIMEOUT_MS: required({
    ...kind.wholeNumber(1000, 3_600_000, 'a number of milliseconds'),
    default: '90000',
    sentence:
      'How long a connection may wait for its next request. It has to be longer than the proxy in front keeps its own (usually 60 or 75 seconds): otherwise a request can meet a connection that is just being closed.',
  }),
} satisfies Rows

const SESSION_ROWS = {
  SECRET: optional({
    reloads: true,
    ...kind.secrets,
    defaultNote: 'derived from the client secret',
    sentence:
      'Our own secrets: the first seals and signs, all of them open. To replace one, put the new one in front; when every instance has it, take the old one away.',
  }),
  SECRET_FILE: optional({ reloads: true, ...kind.secretsFile, sentence: 'Reads our own secrets from a file instead.' }),
  STORE: required({
    ...kind.store,
    default: 'lmdb:./data',
    sentence:
      'Where sessions live: `memory:` forgets them at the end, `lmdb:DIRECTORY` keeps them on this machine, Redis or Valkey shares them between machines.',
  }),
  REFRESH_LEAD_SECONDS: required({
    ...kind.wholeNumber(1, 86_400, 'a number of seconds'),
    default: '300',
    sentence: 'A token is refreshed when it expires within this time.',
  }),
  REFRESH_FAILURE: required({
    ...kind.oneOf(['clear', 'keep'], 'keep'),
    default: 'clear',
    sentence:
      '`clear` ends the session when a refresh fails, as the specification says; `keep` lets it live while its token is valid, unless the provider says `invalid_grant` or `invalid_token`.',
  }),
  SESSION_MAX_HOURS: required({
    ...kind.wholeNumber(1, 8_760, 'a number of hours'),
    default: '168',
    sentence: 'A session that keeps refreshing still ends after this time.',
  }),
  SESSION_CACHE_SIZE: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of sessions'),
    default: '100000',
    sentence: 'How many opened sessions a process keeps in memory at most; the store is still asked about each.',
  }),
  SESSION_CACHE_MB: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number of megabytes'),
    default: '256',
    sentence:
      'How much memory they may take, with Redis together with their records, and at most a third of what Node may use. An ordinary session takes about 1 KB, another one with the signed JWT for each application (of the last four), and its tokens if they are long.',
  }),
} satisfies Rows

const PAGE_ROWS = {
  APP_NAME: required({
    reloads: true,
    ...kind.text('a name of at most 60 characters', '采购平台', 60),
    default: '统一登录',
    sentence: 'The name shown on the pages.',
  }),
  PAGE_LANGUAGE: required({
    reloads: true,
    ...kind.pageLanguage,
    default: 'zh-CN',
    sentence:
      'The language of the pages: `zh-CN`, `en`, one of [`languages`](words.md), or `auto` (the browser’s, else zh-CN).',
  }),
  LOGO_FILE: optional({
    reloads: true,
    ...imageFile,
    defaultNote: 'ours',
    sentence: 'The mark at the top of the pages and in the browser’s tab ([your own look](look.md)).',
  }),
  ACCENT_COLOR: optional({
    reloads: true,
    ...color,
    defaultNote: 'ours',
    sentence:
      'The colour of buttons and links. Where it could not be read on the light or the dark pages, a darker or lighter shade of it is used there.',
  }),
} satisfies Rows

const OBSERVING_ROWS = {
  LOG_LEVEL: required({
    ...kind.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'warn'),
    default: 'info',
    sentence: 'Which events reach the log.',
  }),
  LOG_FORMAT: required({
    ...kind.oneOf(['auto', 'json', 'pretty'], 'json'),
    default: 'auto',
    sentence:
      '`auto` writes lines for people on a terminal and JSON everywhere else; `json` and `pretty` always the same.',
  }),
  ACCESS_LOG: required({
    ...kind.yesOrNo,
    default: 'false',
    sentence: 'One line in the log for each request, after it has ended ([its fields](events.md#the-access-log)).',
  }),
  AUDIT_KEEP: required({
    ...kind.wholeNumber(0, 10_000_000, 'a number of events'),
    default: '10000',
    sentence:
      'How many events of the [audit trail](audit.md) the store keeps, of all processes and machines; when there are more, the kind of event that has most lets go of its oldest. 0 keeps none.',
  }),
  AUDIT_FILE: optional({
    ...kind.appendableFile,
    sentence: 'A file for every event of the audit trail, as lines of JSON; opened again on SIGHUP.',
  }),
  METRICS_FROM: required({
    ...kind.networksOrNone,
    default: '127.0.0.0/8,::1',
    sentence:
      'Who may read `/_menshen/metrics` ([monitoring](monitoring.md)), by the address of the connection and never through a proxy: whatever carries `X-Forwarded-*` or `Forwarded`, or comes from `TRUSTED_PROXIES`, is refused. `none` turns it off.',
  }),
} satisfies Rows

const RUNNING_ROWS = {
  WORKERS: required({
    ...kind.wholeNumber(1, 256, 'a number of processes'),
    default: '1',
    sentence: 'Processes on this machine that share the port and the store (`lmdb:` or Redis).',
  }),
  RATE_LIMIT_PER_MINUTE: required({
    ...kind.wholeNumber(0, 1_000_000, 'a number'),
    default: '600',
    sentence: 'Sign-in requests per address and minute (a whole office can share one address); 0 turns the limit off.',
  }),
  CONFIG: optional({
    ...kind.text('the path of a file', 'config/menshen.config.ts'),
    defaultNote: '`./menshen.config.{ts,mts,js,mjs}`, if there is one',
    sentence:
      'The file of the structured settings: rules, upstreams, [words](words.md). One that is named here has to be there.',
  }),
  NODE_ENV: optional({
    ...kind.text('development, dev or test; anything else means production', 'production'),
    defaultNote: 'development',
    sentence:
      'In production there is no development provider, plain http is refused beyond this machine, and `/_menshen/ready` wants the settings of the provider.',
  }),
  ALLOW_PLAIN_HTTP: required({
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'Lets a production start use plain http addresses that are not loopback. Tokens and cookies can be read on the way.',
  }),
  ALLOW_UNVERIFIED_EMAIL: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'Lets an e-mail address count as username and e-mail that the provider [has not verified](providers.md#e-mail-addresses). Whoever can write any address at the provider can then take the name of another.',
  }),
  DEV_PROVIDER_PORT: required({ ...kind.port, default: '3001', sentence: 'The port of the development provider.' }),
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
