// Finds names that are probably misspelt: settings in the environment, options, keys of the configuration.

import { type Environment, SETTINGS } from './settings.ts'

export interface MisspeltName {
  readonly name: string
  /** What was probably meant, if anything is near. */
  readonly likely: string | undefined
  /** The page that translates the settings of another product. */
  readonly page?: string
}

const NAMES = Object.keys(SETTINGS)
const PREFIX = 'MENSHEN_'
const OAUTH2_PROXY = 'OAUTH2_PROXY_'
/** Kubernetes sets variables for services, for example for one that is called menshen. All of them are about its ports. */
const KUBERNETES = /^(SERVICE_(HOST|PORT)\w*|PORT_\d+_\w+)$/

/** One letter away from a setting of Menshen, and common among other programs. */
const IGNORED_NAMES: ReadonlySet<string> = new Set(['LOG_FILE'])

/** Names that other programs use. */
const ALIASES: Readonly<Record<string, keyof typeof SETTINGS>> = {
  UPSTREAM_URL: 'UPSTREAM',
  UPSTREAM_URI: 'UPSTREAM',
  UPSTREAM_ADDRESS: 'UPSTREAM',
  UPSTREAMS: 'UPSTREAM',
  STORE_URL: 'STORE',
  SESSION_SECRET: 'SECRET',
  COOKIE_SECRET: 'SECRET',
  OIDC_ISSUER: 'AUTH_URL',
  OIDC_ISSUER_URL: 'AUTH_URL',
  OIDC_CLIENT_ID: 'CLIENT_ID',
  OAUTH_CLIENT_ID: 'CLIENT_ID',
  OAUTH2_CLIENT_ID: 'CLIENT_ID',
  OIDC_CLIENT_SECRET: 'CLIENT_SECRET',
  OAUTH_CLIENT_SECRET: 'CLIENT_SECRET',
  OAUTH2_CLIENT_SECRET: 'CLIENT_SECRET',
}

// Names that the application beside Menshen often has in its environment, from its platform or its own deployment. In .env they are
// probably for Menshen, unless the setting that they would mean is set.

const SHARED_ALIASES: Readonly<Record<string, keyof typeof SETTINGS>> = {
  REDIS_URL: 'STORE',
  ISSUER_URL: 'AUTH_URL',
  TRUST_PROXY: 'TRUSTED_PROXIES',
  SESSION_TIMEOUT: 'SESSION_IDLE_MINUTES',
}

/** They begin like a setting: TLS_CERT_FILE. */
const SHARED_PREFIXES: ReadonlySet<string> = new Set(['TLS_CERT', 'TLS_KEY', 'CLIENT_CERT', 'KEEP_ALIVE', 'RATE_LIMIT'])

/** The setting that is meant by a name of another program. */
export function settingOfAlias(name: string): string | undefined {
  return Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
}

/** The setting with this name, which may be written like an option: `baseUrl`. */
export function settingNamed(name: string): string | undefined {
  const letters = withoutDashes(name.toUpperCase())
  return NAMES.find(ours => withoutDashes(ours) === letters)
}

/** `used` are variables that the configuration names, `inEnvFile` those that .env sets. */
export function findMisspelt(
  environment: Environment,
  used: readonly string[] = [],
  inEnvFile: readonly string[] = [],
): MisspeltName[] {
  const unknown = Object.keys(environment).filter(
    name => environment[name] && !Object.hasOwn(SETTINGS, name) && !IGNORED_NAMES.has(name) && !used.includes(name),
  )
  const isOfOAuth2Proxy = (name: string) =>
    name.startsWith(OAUTH2_PROXY) && !isKubernetes(name.slice(OAUTH2_PROXY.length), environment[name])
  const found = unknown.flatMap(name => {
    const upper = name.toUpperCase()
    if (upper.startsWith(PREFIX)) {
      const rest = upper.slice(PREFIX.length)
      return isKubernetes(rest, environment[name])
        ? []
        : [{ name, likely: likelyName(rest) ?? likelyShared(rest, true) }]
    }
    const shared = likelyShared(upper, inEnvFile.includes(name))
    const likely = likelyName(upper) ?? (shared && !environment[shared] ? shared : undefined)
    return likely === undefined ? [] : [{ name, likely }]
  })
  // One hint for all of them: few settings of oauth2-proxy are one setting here.
  const ofOAuth2Proxy = { name: `${OAUTH2_PROXY}*`, likely: undefined, page: 'docs/migrating.md' }
  return unknown.some(isOfOAuth2Proxy) ? [...found, ofOAuth2Proxy] : found
}

function isKubernetes(name: string, value = ''): boolean {
  return KUBERNETES.test(name) || (name === 'PORT' && /^(tcp|udp):/.test(value))
}

/** What is meant by a name that may also be the application's: another product's name, or the beginning of one setting only. */
function likelyShared(name: string, isOurs: boolean): string | undefined {
  if (isOurs && Object.hasOwn(SHARED_ALIASES, name)) return SHARED_ALIASES[name]
  // One word, such as SESSION or LOG, says too little.
  if (!name.includes('_') || (!isOurs && SHARED_PREFIXES.has(name))) return undefined
  const [first, ...others] = NAMES.filter(ours => ours.startsWith(`${name}_`))
  return others.length === 0 ? first : undefined
}

function likelyName(name: string): string | undefined {
  const letters = withoutDashes(name)
  return settingOfAlias(name) ?? NAMES.find(ours => withoutDashes(ours) === letters) ?? nearest(name, NAMES, isTypo)

  function isTypo(distance: number, ours: string): boolean {
    // Short names have many neighbours that belong to others, such as PORTS: only swapped letters are a typo there.
    if (ours.length < 6) return distance === 1 && isSameLetters(name, ours)
    // A typo has at most one wrong letter at the beginning: SSL_CERT_FILE is not our TLS_CERT_FILE.
    return distance === 1 || (distance <= maxTypos(ours) && name[0] === ours[0])
  }
}

function maxTypos(name: string): number {
  if (name.length < 12) return 1
  return name.length < 15 ? 2 : 3
}

function withoutDashes(name: string): string {
  return name.replace(/[_-]/g, '')
}

function isSameLetters(one: string, other: string): boolean {
  return [...one].sort().join('') === [...other].sort().join('')
}

// The nearest name.

/** How many letters to add, remove, replace, or swap with their neighbour. */
function distance(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const differs = one[row - 1] === other[column - 1] ? 0 : 1
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const replaced = at(last, column - 1) + differs
      const swapped = isSwapped ? at(beforeLast, column - 2) + 1 : replaced
      current.push(Math.min(at(last, column) + 1, at(current, column - 1) + 1, replaced, swapped))
    }
    beforeLast = last
    last = current
  }
  return at(last, other.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? 0
}

/** The nearest name whose distance `isNear` accepts. */
export function nearest(
  given: string,
  names: readonly string[],
  isNear: (letters: number, name: string) => boolean,
): string | undefined {
  const ranked = names
    // The distance is at least the difference in length.
    .filter(name => isNear(Math.abs(given.length - name.length), name) || given.length === name.length)
    .map(name => ({ name, letters: distance(given, name) }))
    .sort((a, b) => a.letters - b.letters)
  return ranked.find(({ name, letters }) => isNear(letters, name))?.name
}

/** What was probably meant by a name that is none of these; `undefined` if nothing is near. */
export function closestName(given: string, names: readonly string[]): string | undefined {
  const letters = (name: string) => name.replace(/[_-]/g, '').toLowerCase()
  return (
    names.find(name => letters(name) === letters(given)) ??
    nearest(given, names, distance => distance <= Math.max(1, Math.floor(given.length / 4)))
  )
}
