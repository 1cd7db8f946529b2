// Variables that look like a setting of ours with a slip in its name. They would otherwise be silently without effect.
import { nearest } from './nearest.ts'
import type { Environment } from './read.ts'
import { SETTINGS } from './rows.ts'

export interface Misspelt {
  readonly name: string
  /** What was probably meant, if anything is near. */
  readonly likely: string | undefined
}

const NAMES = Object.keys(SETTINGS)
const PREFIX = 'MENSHEN_'
/** A service of this name gets variables from Kubernetes, all of them about its ports. */
const KUBERNETES = /^MENSHEN_(SERVICE_(HOST|PORT)\w*|PORT_\d+_\w+)$/

/** A letter away from one of ours, and common among other programs. */
const OF_OTHERS: ReadonlySet<string> = new Set(['LOG_FILE'])

/** What other programs call it. */
const ALIASES: Readonly<Record<string, keyof typeof SETTINGS>> = {
  UPSTREAM_URL: 'UPSTREAM',
  UPSTREAM_URI: 'UPSTREAM',
  UPSTREAM_ADDRESS: 'UPSTREAM',
  UPSTREAMS: 'UPSTREAM',
  STORE_URL: 'STORE',
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

export function findMisspelt(environment: Environment): Misspelt[] {
  return Object.keys(environment)
    .filter(name => environment[name] && !Object.hasOwn(SETTINGS, name) && !OF_OTHERS.has(name))
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
    // Short names have many neighbours that belong to others, such as PORTS: only swapped letters count there.
    if (ours.length < 6) return distance === 1 && isSameLetters(name, ours)
    // Nobody slips more than once at the beginning: SSL_CERT_FILE is not our TLS_CERT_FILE.
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
