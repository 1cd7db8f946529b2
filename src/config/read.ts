// Reads the settings from an environment by the rows of settings.ts, and derives what follows from them.

import { type Problem, refuseIf } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem, quoted } from '../text/text.ts'
import { conflictsIn, plainHttpIn } from './conflicts.ts'
import { isLoopback, isProduction, portIn } from './deployment.ts'
import { fileProblem } from './kinds.ts'
import { hidePassword } from './secret.ts'
import { type CheckedSettings, type Environment, type Name, type Row, SETTINGS, type Settings } from './settings.ts'

const ROWS = Object.entries(SETTINGS) as [Name, Row<unknown>][]
const MAX_SHOWN_LENGTH = 100
const DEFAULT_PORT = 3000
const PROVIDER_SETTINGS = ['PROVIDER', 'ISSUER', 'AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET'] as const

/** Reads all settings, and refuses them with all of their problems. */
export function readSettings(environment: Environment): Settings {
  const given = (name: string) => environment[name] || undefined
  const { checked, problems } = checkRows(ROWS, given)
  refuseIf([...problems, ...conflictsIn(checked, name => given(name) !== undefined), ...plainHttpIn(checked)])
  return complete(checked, given('BASE_URL') !== undefined)
}

/** Reads on top of settings that were read or checked before: what the environment does not set stays. */
export function overrideSettings(settings: Settings, environment: Environment): Settings {
  const given = (name: string) => environment[name] || undefined
  const rows = ROWS.filter(([name]) => given(name) !== undefined)
  if (rows.length === 0) return settings
  const { checked, problems } = checkRows(rows, given)
  refuseIf(problems)
  const changed = checked as Partial<Settings>
  const whole = { ...settings, ...changed, ...secretsIn(settings, changed) }
  refuseConflicts(whole)
  return whole
}

/** A secret and the file that it was read from: a new value of either replaces both. */
function secretsIn(settings: Settings, changed: Partial<Settings>): Partial<Settings> {
  const client = changed.CLIENT_SECRET ?? changed.CLIENT_SECRET_FILE
  const own = changed.SECRET ?? changed.SECRET_FILE
  return {
    CLIENT_SECRET: client ?? settings.CLIENT_SECRET,
    CLIENT_SECRET_FILE: client ? changed.CLIENT_SECRET_FILE : settings.CLIENT_SECRET_FILE,
    SECRET: own ?? settings.SECRET,
    SECRET_FILE: own ? changed.SECRET_FILE : settings.SECRET_FILE,
  }
}

function checkRows(rows: typeof ROWS, given: (name: string) => string | undefined) {
  const problems: Problem[] = []
  const values: Partial<Record<Name, unknown>> = {}
  for (const [name, row] of rows) {
    const text = given(name) ?? row.default
    if (text === undefined) continue
    const result = row.check.safeParse(text)
    if (result.success) values[name] = result.data
    else problems.push(problemWith(name, text, row))
  }
  return { checked: values as CheckedSettings, problems }
}

/** Adds the settings that follow from others. */
function complete(checked: CheckedSettings, hasBaseUrl: boolean): Settings {
  const scheme = checked.TLS_CERT_FILE ? 'https' : 'http'
  const baseUrl = hasBaseUrl ? checked.BASE_URL : `${scheme}://localhost:${checked.PORT ?? DEFAULT_PORT}`
  return {
    ...checked,
    BASE_URL: baseUrl,
    PORT: checked.PORT ?? (isServedHere(checked, baseUrl) ? portIn(baseUrl) : DEFAULT_PORT),
    CLIENT_SECRET: checked.CLIENT_SECRET ?? checked.CLIENT_SECRET_FILE,
    SECRET: checked.SECRET ?? checked.SECRET_FILE,
  }
}

/** Whether browsers connect to this process. With https and no certificate there is a proxy in front. */
function isServedHere({ TLS_CERT_FILE }: CheckedSettings, baseUrl: string): boolean {
  return isLoopback(baseUrl) && (TLS_CERT_FILE !== undefined || baseUrl.startsWith('http:'))
}

/** Checks settings that a program has made or changed as if they had been read. */
export function checkSettings(settings: Settings): Settings {
  const values: Readonly<Record<string, unknown>> = { ...settings }
  const unknown = Object.keys(values).filter(name => !Object.hasOwn(SETTINGS, name))
  const bad = ROWS.filter(([name, row]) => !isValidValue(values[name], row))
  const problems = [
    ...unknown.map(name => ({ message: `${name} is not a setting; expected one of docs/settings.md.` })),
    ...bad.map(([name, row]) => problemWith(name, String(values[name]), row)),
  ]
  refuseIf(problems)
  refuseConflicts(settings)
  return settings
}

/** Each value is possible; together they may not be. */
function refuseConflicts(settings: Settings): void {
  const isGiven = (name: Name) => settings[name] !== undefined
  // A secret that was read from its file has both names.
  const isFromFile = (name: Name) =>
    (name === 'CLIENT_SECRET_FILE' && settings.CLIENT_SECRET === settings.CLIENT_SECRET_FILE) ||
    (name === 'SECRET_FILE' && settings.SECRET === settings.SECRET_FILE)
  refuseIf(conflictsIn(settings, name => isGiven(name) && !isFromFile(name)))
  refuseIf(plainHttpIn(settings))
}

/** Whether a value is a possible result of the row's check. */
function isValidValue(value: unknown, { check, isValue, default: fallback }: Row<unknown>): boolean {
  if (value === undefined) return fallback === undefined
  if (typeof value !== 'object') return check.safeParse(String(value)).data === value
  return value !== null && isValue?.(value) === true
}

/** Whether no setting names a provider on a developer's own machine: the embedded provider is used, which lets anyone in. */
export function wantsDevProvider(settings: Settings): boolean {
  return !namesProvider(settings) && !isProduction(settings) && isLoopback(settings.BASE_URL)
}

/** Whether a setting of the provider is set. */
export function namesProvider(settings: Settings): boolean {
  return PROVIDER_SETTINGS.some(name => settings[name] !== undefined)
}

export function isSecure(settings: Pick<Settings, 'BASE_URL'>): boolean {
  return settings.BASE_URL.startsWith('https:')
}

function problemWith(name: string, text: string, row: Row<unknown>): Problem {
  // A line break or an escape sequence in the value must not forge a line or move the cursor.
  const plain = hidePassword(text)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .slice(0, MAX_SHOWN_LENGTH)
  const state = row.file ? fileProblem(text) : undefined
  // Any other text may be the secret itself instead of its path.
  if (state && /^\.{0,2}\//.test(text))
    return drafted(quoted(`"${plain}", which ${state.en}`, `“${plain}”，${state.zh}`))
  return drafted(row.secret ? quoted('not usable', '（不显示）') : quoted(`"${plain}"`, `“${plain}”`))

  function drafted(shown: Phrase): Problem {
    const { expected, expectedZh, example } = row
    const given = phrase('cli.setting_wrong', {
      name,
      shown,
      expected: quoted(expected, expectedZh ?? expected),
      example,
    })
    return phrasedProblem({ setting: name, example }, given)
  }
}
