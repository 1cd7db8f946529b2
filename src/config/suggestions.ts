// Finds names that are probably misspelt: settings in the environment, options, keys of the configuration.

import { type Environment, SETTINGS } from './settings.ts'

export interface MisspeltName {
  readonly name: string
  /** What was probably meant, if anything is near. */
  readonly likely: string | undefined
}

const NAMES = Object.keys(SETTINGS)
const PREFIX = 'MENSHEN_'
/** Kubernetes sets such variables for a service of this name, all of them about its ports. */
const KUBERNETES = /^MENSHEN_(SERVICE_(HOST|PORT)\w*|PORT_\d+_\w+)$/

/** One letter away from a setting of Menshen, and common among other programs. */
const OF_OTHERS: ReadonlySet<string> = new Set(['LOG_FILE'])

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

/** The setting that is meant by a name of another program. */
export function settingOfAlias(name: string): string | undefined {
  return Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
}

/** The setting with this name, which may be written like an option: `baseUrl`. */
export function settingNamed(name: string): string | undefined {
  const letters = withoutDashes(name.toUpperCase())
  return NAMES.find(ours => withoutDashes(ours) === letters)
}

/** `used` are variables that the configuration names. */
export function findMisspelt(environment: Environment, used: readonly string[] = []): MisspeltName[] {
  return Object.keys(environment)
    .filter(name => environment[name] && !Object.hasOwn(SETTINGS, name) && !OF_OTHERS.has(name) && !used.includes(name))
    .flatMap(name => {
      const upper = name.toUpperCase()
      if (upper.startsWith(PREFIX)) {
        if (isKubernetes(upper, environment[name])) return []
        return [{ name, likely: likelyName(upper.slice(PREFIX.length)) }]
      }
      const likely = likelyName(upper)
      return likely === undefined ? [] : [{ name, likely }]
    })
}

function isKubernetes(name: string, value = ''): boolean {
  return KUBERNETES.test(name) || (name === `${PREFIX}PORT` && /^(tcp|udp):/.test(value))
}

function likelyName(name: string): string | undefined {
  const letters = withoutDashes(name)
  return settingOfAlias(name) ?? NAMES.find(ours => withoutDashes(ours) === letters) ?? nearest(name, NAMES, isSlip)

  function isSlip(distance: number, ours: string): boolean {
    // Short names have many neighbours that belong to others, such as PORTS: only swapped letters are a typo there.
    if (ours.length < 6) return distance === 1 && isSameLetters(name, ours)
    // A typo has at most one wrong letter at the beginning: SSL_CERT_FILE is not our TLS_CERT_FILE.
    return distance === 1 || (distance <= slipsIn(ours) && name[0] === ours[0])
  }
}

function slipsIn(name: string): number {
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
export function likelyMeantOf(given: string, names: readonly string[]): string | undefined {
  const letters = (name: string) => name.replace(/[_-]/g, '').toLowerCase()
  return (
    names.find(name => letters(name) === letters(given)) ??
    nearest(given, names, distance => distance <= Math.max(1, Math.floor(given.length / 4)))
  )
}
