// Every setting: one row each with its name, default, check and sentence. docs/settings.md is made from these rows.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { Secret } from './secret.ts'

export interface Row<T> {
  /** The text that counts when nothing is set; a row without one is `undefined` then. */
  readonly default?: string
  /** What the documentation says in place of a default that depends on other settings. */
  readonly defaultNote?: string
  readonly check: z.ZodType<T, string>
  readonly expected: string
  readonly example: string
  readonly sentence: string
  readonly secret?: true
}

const optional = <T>(row: Row<T>): Row<T | undefined> => row
const required = <T>(row: Row<T> & { default: string }): Row<T> => row

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max))

const webAddress = z
  .string()
  .refine(text => URL.canParse(text))
  .transform(text => new URL(text))
  .refine(url => url.protocol === 'http:' || url.protocol === 'https:')
  .refine(url => url.username === '' && url.password === '' && url.search === '' && url.hash === '')

const origin = webAddress.refine(url => url.pathname === '/').transform(url => url.origin)
const baseAddress = webAddress.transform(url => url.href.replace(/\/+$/, ''))
const secretText = z
  .string()
  .min(1)
  .transform(text => new Secret(text))
const secretFile = z
  .string()
  .transform((path, context) => {
    try {
      return readFileSync(path, 'utf8').trim()
    } catch {
      context.addIssue('unreadable')
      return z.NEVER
    }
  })
  .pipe(secretText)
const yesOrNo = z.enum(['true', 'false']).transform(text => text === 'true')

export const SETTINGS = {
  BASE_URL: required({
    default: 'http://localhost:3000',
    defaultNote: '`http://localhost:3000`, or with the port of `PORT` if only that is set',
    check: origin,
    expected: 'an http or https address without a path',
    example: 'https://app.example.com',
    sentence: 'The address that the browser sees. `/callback` is registered at the provider under it.',
  }),
  HOST: required({
    default: '127.0.0.1',
    check: z.string().min(1),
    expected: 'an address of this machine',
    example: '0.0.0.0',
    sentence: 'The address to listen on.',
  }),
  PORT: optional({
    defaultNote: 'the port of `BASE_URL` if that is loopback, else 3000',
    check: wholeNumber(1, 65535),
    expected: 'a port from 1 to 65535',
    example: '3000',
    sentence: 'The port to listen on.',
  }),
  AUTH_URL: optional({
    check: baseAddress,
    expected: 'an http or https address without a query',
    example: 'https://idp.example.com',
    sentence: 'The address of the identity provider, to which its paths are added.',
  }),
  CLIENT_ID: optional({
    check: z.string().min(1),
    expected: 'the identifier that the provider gave to this application',
    example: 'my-application',
    sentence: 'The OAuth client identifier.',
  }),
  CLIENT_SECRET: optional({
    check: secretText,
    expected: 'the secret that the provider gave to this application',
    example: 'a-long-random-string',
    sentence: 'The OAuth client secret. It leaves the server only in the body of a token request.',
    secret: true,
  }),
  CLIENT_SECRET_FILE: optional({
    check: secretFile,
    expected: 'the path of a readable file that is not empty',
    example: '/run/secrets/client_secret',
    sentence: 'Reads the client secret from a file instead.',
    secret: true,
  }),
  STORE: required({
    default: 'lmdb:./data',
    check: z.string().regex(/^(memory:|lmdb:.+)$/),
    expected: 'memory: or lmdb:DIRECTORY',
    example: 'lmdb:/var/lib/menshen',
    sentence: 'Where sessions live: `memory:` forgets them at the end, `lmdb:DIRECTORY` keeps them on this machine.',
  }),
  STATE_CHECK: required({
    default: 'suffix',
    check: z.enum(['suffix', 'bound']),
    expected: 'suffix or bound',
    example: 'bound',
    sentence:
      '`suffix` only looks at the end of the state, as the specification says; `bound` compares it with the attempt that the same browser started, once. Recommended: `bound`.',
  }),
  PKCE: required({
    default: 'off',
    check: z.enum(['off', 'S256']),
    expected: 'off or S256',
    example: 'S256',
    sentence: '`S256` adds PKCE to the authorization and token requests, if the provider supports it.',
  }),
  REFRESH_LEAD_SECONDS: required({
    default: '300',
    check: wholeNumber(0, 86_400),
    expected: 'a number of seconds from 0 to 86400',
    example: '300',
    sentence: 'A token is refreshed when it expires within this time.',
  }),
  REFRESH_FAILURE: required({
    default: 'clear',
    check: z.enum(['clear', 'keep']),
    expected: 'clear or keep',
    example: 'keep',
    sentence:
      '`clear` ends the session when a refresh fails, as the specification says; `keep` lets it live while its token is valid if the provider cannot be reached.',
  }),
  LOGOUT_STYLE: required({
    default: 'server',
    check: z.enum(['server', 'browser', 'none']),
    expected: 'server, browser or none',
    example: 'browser',
    sentence:
      'How the provider is told of a sign-out: `server` calls it, `browser` sends the browser through it and back to `/login`, `none` does not tell it.',
  }),
  LOGOUT_URL: required({
    default: '/oauth/logout',
    check: z.string().refine(text => /^\/(?!\/)/.test(text) || webAddress.safeParse(text.replace(/\?.*$/, '')).success),
    expected: 'a path at the provider, or a whole address',
    example: '/public/sp/slo/APP_ID',
    sentence: "The provider's logout interface: a path under `AUTH_URL`, or a whole address.",
  }),
  PROVIDER_TIMEOUT_MS: required({
    default: '5000',
    check: wholeNumber(100, 120_000),
    expected: 'a number of milliseconds from 100 to 120000',
    example: '5000',
    sentence: 'The deadline for one call to the provider, its body included.',
  }),
  SESSION_MAX_HOURS: required({
    default: '168',
    check: wholeNumber(1, 8_760),
    expected: 'a number of hours from 1 to 8760',
    example: '12',
    sentence: 'A session that keeps refreshing still ends after this time.',
  }),
  SESSION_CACHE_SIZE: required({
    default: '10000',
    check: wholeNumber(0, 10_000_000),
    expected: 'a number of sessions from 0 to 10000000',
    example: '50000',
    sentence:
      'How many opened sessions a process keeps in memory (about 2 KB each); the store is still asked about each.',
  }),
  WORKERS: required({
    default: '1',
    check: wholeNumber(1, 256),
    expected: 'a number of processes from 1 to 256',
    example: '4',
    sentence: 'Processes on this machine that share the port and the store (`lmdb:` or Redis).',
  }),
  RATE_LIMIT_PER_MINUTE: required({
    default: '600',
    check: wholeNumber(0, 1_000_000),
    expected: 'a number from 0 to 1000000',
    example: '600',
    sentence: 'Sign-in requests per address and minute (a whole office can share one address); 0 turns the limit off.',
  }),
  APP_NAME: required({
    default: '统一登录',
    check: z.string().min(1).max(60),
    expected: 'a name of at most 60 characters',
    example: '采购平台',
    sentence: 'The name shown on the pages.',
  }),
  LOG_LEVEL: required({
    default: 'info',
    check: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    expected: 'trace, debug, info, warn, error, fatal or silent',
    example: 'warn',
    sentence: 'Which events reach the log.',
  }),
  NODE_ENV: optional({
    check: z.string(),
    expected: 'production, or anything else',
    example: 'production',
    sentence: 'With `production` there is no development provider, and plain http is refused beyond this machine.',
  }),
  ALLOW_PLAIN_HTTP: required({
    default: 'false',
    check: yesOrNo,
    expected: 'true or false',
    example: 'true',
    sentence:
      'Lets a production start use plain http addresses that are not loopback. Tokens and cookies can be read on the way.',
  }),
  DEV_PROVIDER_PORT: required({
    default: '3001',
    check: wholeNumber(1, 65535),
    expected: 'a port from 1 to 65535',
    example: '3001',
    sentence: 'The port of the development provider.',
  }),
} satisfies Record<string, Row<unknown>>
