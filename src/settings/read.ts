// Reads the settings of config.ts from an environment, and answers what follows from them together.

import { MenshenError } from '../errors.ts'
import { matchHeaders, NEVER_KEPT } from './header-names.ts'
import { type Row, SETTINGS } from './rows.ts'
import { hidePassword } from './secret.ts'

type Name = keyof typeof SETTINGS
type Checked = { readonly [K in Name]: (typeof SETTINGS)[K] extends Row<infer T> ? T : never }
export type Settings = Checked & { readonly PORT: number }
export type Environment = Readonly<Record<string, string | undefined>>

const LONGEST_SHOWN = 100
const OAUTH_SETTINGS = ['AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET'] as const

const IDENTITY_SETTINGS = [
  'IDENTITY_USER',
  'IDENTITY_EMAIL',
  'IDENTITY_NAME',
  'IDENTITY_ROLE',
  'IDENTITY_ASSERTION',
] as const

/** Reads all settings at once, so that one start names everything that is wrong. */
export function readSettings(environment: Environment): Settings {
  const problems: string[] = []
  const given = (name: string) => environment[name] || undefined
  const values: Partial<Record<Name, unknown>> = {}
  for (const [name, row] of Object.entries(SETTINGS) as [Name, Row<unknown>][]) {
    const text = given(name) ?? row.default
    if (text === undefined) continue
    const result = row.check.safeParse(text)
    if (result.success) values[name] = result.data
    else problems.push(problem(name, text, row))
  }
  if (given('CLIENT_SECRET') && given('CLIENT_SECRET_FILE'))
    problems.push('CLIENT_SECRET and CLIENT_SECRET_FILE are both set; expected one of them.')
  const checked = values as Checked
  if (!given('TLS_CERT_FILE') !== !given('TLS_KEY_FILE'))
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE go together; expected both of them or none.')
  const headers = IDENTITY_SETTINGS.map(name => checked[name]).filter(name => name !== undefined)
  if (new Set(headers).size < headers.length)
    problems.push(`${IDENTITY_SETTINGS.join(', ')} share a name; expected a header of its own for each.`)
  const unkept = (checked.KEEP_HEADERS ?? []).filter(name => [...NEVER_KEPT, ...headers].some(matchHeaders([name])))
  if (unkept.length > 0)
    problems.push(
      `KEEP_HEADERS names ${unkept.join(', ')}, which Menshen says itself or which is for one connection; expected other headers, for example x-user-id.`,
    )
  if (checked.STORE === 'memory:' && checked.WORKERS > 1)
    problems.push('STORE is "memory:", which WORKERS cannot share; expected a store for all, for example lmdb:./data.')
  if (problems.length > 0) throw new MenshenError('bad_settings', problems.join('\n'))

  const scheme = checked.TLS_CERT_FILE ? 'https' : 'http'
  const baseUrl = given('BASE_URL') ? checked.BASE_URL : `${scheme}://localhost:${checked.PORT ?? 3000}`
  const settings: Settings = {
    ...checked,
    BASE_URL: baseUrl,
    PORT: checked.PORT ?? portOf(new URL(baseUrl)),
    CLIENT_SECRET: checked.CLIENT_SECRET ?? checked.CLIENT_SECRET_FILE,
  }
  if (settings.NODE_ENV === 'production' && !settings.ALLOW_PLAIN_HTTP) refusePlainHttp(settings)
  return settings
}

export function missingSettings(settings: Settings): string[] {
  return OAUTH_SETTINGS.filter(name => settings[name] === undefined)
}

/** Nothing of the provider is configured and this is not production: the embedded provider takes its place. */
export function wantsDevProvider(settings: Settings): boolean {
  return settings.NODE_ENV !== 'production' && missingSettings(settings).length === OAUTH_SETTINGS.length
}

export function isSecure(settings: Pick<Settings, 'BASE_URL'>): boolean {
  return settings.BASE_URL.startsWith('https:')
}

function problem(name: string, text: string, row: Row<unknown>): string {
  // A line break or an escape sequence in the value must not forge a line or paint the terminal.
  const plain = hidePassword(text)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .slice(0, LONGEST_SHOWN)
  const shown = row.secret ? 'not usable' : `"${plain}"`
  return `${name} is ${shown}; expected ${row.expected}, for example ${row.example}.`
}

function refusePlainHttp(settings: Settings): void {
  const problems = (['BASE_URL', 'AUTH_URL', 'LOGOUT_URL', 'JWKS_URL'] as const)
    .filter(name => settings[name]?.startsWith('http:') && !isLoopback(new URL(settings[name])))
    .map(
      name =>
        `${name} is "${settings[name]}"; in production expected an https address, for example https://app.example.com (ALLOW_PLAIN_HTTP=true accepts the risk).`,
    )
  if (problems.length > 0) throw new MenshenError('bad_settings', problems.join('\n'))
}

function isLoopback({ hostname }: URL): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  )
}

function portOf(baseUrl: URL): number {
  if (!isLoopback(baseUrl)) return 3000
  return Number(baseUrl.port) || (baseUrl.protocol === 'https:' ? 443 : 80)
}
