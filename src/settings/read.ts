// Reads the settings of rows.ts from an environment, and answers what follows from them together.

import { MenshenError } from '../errors.ts'
import { matchHeaders, NEVER_KEPT } from './header-names.ts'
import { isLongEnough } from './kinds.ts'
import type { Row } from './row.ts'
import { SETTINGS } from './rows.ts'
import { hidePassword, Secret } from './secret.ts'

type Name = keyof typeof SETTINGS
type Checked = { readonly [K in Name]: (typeof SETTINGS)[K] extends Row<infer T> ? T : never }
export type Settings = Checked & { readonly PORT: number }
export type Environment = Readonly<Record<string, string | undefined>>

const ROWS = Object.entries(SETTINGS) as [Name, Row<unknown>][]
const LONGEST_SHOWN = 100
/** The values of NODE_ENV that mean it; so does none. */
const DEVELOPMENT: readonly string[] = ['development', 'dev', 'test']
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
  const given = (name: string) => environment[name] || undefined
  const { checked, problems } = checkRows(given)
  refuseIf([...problems, ...conflictsIn(checked, name => given(name) !== undefined)])
  const settings = complete(checked, given('BASE_URL') !== undefined)
  refuseIf(plainHttpIn(settings))
  return settings
}

function checkRows(given: (name: string) => string | undefined) {
  const problems: string[] = []
  const values: Partial<Record<Name, unknown>> = {}
  for (const [name, row] of ROWS) {
    const text = given(name) ?? row.default
    if (text === undefined) continue
    const result = row.check.safeParse(text)
    if (result.success) values[name] = result.data
    else problems.push(problem(name, text, row))
  }
  return { checked: values as Checked, problems }
}

/** What is wrong although each setting is right by itself. */
function conflictsIn(checked: Checked, isGiven: (name: Name) => boolean): string[] {
  const problems: string[] = []
  if (isGiven('CLIENT_SECRET') && isGiven('CLIENT_SECRET_FILE'))
    problems.push('CLIENT_SECRET and CLIENT_SECRET_FILE are both set; expected one of them.')
  if (isGiven('SECRET') && isGiven('SECRET_FILE'))
    problems.push('SECRET and SECRET_FILE are both set; expected one of them.')
  if (isGiven('TLS_CERT_FILE') !== isGiven('TLS_KEY_FILE'))
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
  return problems
}

/** With what follows from other settings. */
function complete(checked: Checked, hasBaseUrl: boolean): Settings {
  const scheme = checked.TLS_CERT_FILE ? 'https' : 'http'
  const baseUrl = hasBaseUrl ? checked.BASE_URL : `${scheme}://localhost:${checked.PORT ?? 3000}`
  return {
    ...checked,
    BASE_URL: baseUrl,
    PORT: checked.PORT ?? (isLoopback(baseUrl) ? portIn(baseUrl) : 3000),
    CLIENT_SECRET: checked.CLIENT_SECRET ?? checked.CLIENT_SECRET_FILE,
    SECRET: checked.SECRET ?? checked.SECRET_FILE,
  }
}

/** Settings that did not come from `readSettings`, or were changed since: checked as if they had been read. */
export function checkSettings(settings: Settings): Settings {
  const values: Readonly<Record<string, unknown>> = { ...settings }
  const unknown = Object.keys(values).filter(name => !Object.hasOwn(SETTINGS, name))
  const bad = ROWS.filter(([name, row]) => !isOfItsKind(values[name], row))
  const problems = [
    ...unknown.map(name => `${name} is not a setting; expected one of docs/settings.md.`),
    ...bad.map(([name, row]) => problem(name, String(values[name]), row)),
  ]
  refuseIf(problems)
  const isGiven = (name: Name) => settings[name] !== undefined
  // A secret that was read from its file stands under both names.
  const isFromFile = (name: Name) =>
    (name === 'CLIENT_SECRET_FILE' && settings.CLIENT_SECRET === settings.CLIENT_SECRET_FILE) ||
    (name === 'SECRET_FILE' && settings.SECRET === settings.SECRET_FILE)
  refuseIf(conflictsIn(settings, name => isGiven(name) && !isFromFile(name)))
  refuseIf(plainHttpIn(settings))
  return settings
}

/** Whether a value is one that the row's check could have given. */
function isOfItsKind(value: unknown, { check, default: usual, example, secret }: Row<unknown>): boolean {
  if (value === undefined) return usual === undefined
  if (typeof value !== 'object') return check.safeParse(String(value)).data === value
  if (secret) return value instanceof Secret || isSecretList(value)
  const sample = check.safeParse(example).data
  return typeof sample === 'object' && sample?.constructor === value?.constructor
}

function isSecretList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(part => part instanceof Secret && isLongEnough(part))
}

function refuseIf(problems: readonly string[]): void {
  if (problems.length > 0) throw new MenshenError('bad_settings', problems.join('\n'))
}

export function missingSettings(settings: Settings): string[] {
  return OAUTH_SETTINGS.filter(name => settings[name] === undefined)
}

/**
 * Nothing of the provider is configured and this is somebody's own machine: the embedded provider, which lets anybody
 * in, takes its place.
 */
export function wantsDevProvider(settings: Settings): boolean {
  const hasNone = missingSettings(settings).length === OAUTH_SETTINGS.length
  return hasNone && !isProduction(settings) && isLoopback(settings.BASE_URL)
}

/** Anything but the known words for development: a word that we do not know must not open a door. */
export function isProduction({ NODE_ENV }: Pick<Settings, 'NODE_ENV'>): boolean {
  return NODE_ENV !== undefined && !DEVELOPMENT.includes(NODE_ENV)
}

export function isUnknownEnvironment(name: string | undefined): boolean {
  return name !== undefined && name !== 'production' && !DEVELOPMENT.includes(name)
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

function plainHttpIn(settings: Settings): string[] {
  if (!isProduction(settings) || settings.ALLOW_PLAIN_HTTP) return []
  return (['BASE_URL', 'AUTH_URL', 'LOGOUT_URL', 'JWKS_URL'] as const)
    .filter(name => settings[name]?.startsWith('http:') && !isLoopback(settings[name]))
    .map(
      name =>
        `${name} is "${settings[name]}"; in production expected an https address, for example https://app.example.com (ALLOW_PLAIN_HTTP=true accepts the risk).`,
    )
}

/** Whether an address leads to this very machine. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address)
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  )
}

export function portIn(address: string): number {
  const { port, protocol } = new URL(address)
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}
