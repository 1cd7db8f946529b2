// Names under which applications believe what they are told about a request, and the spellings that they take for them.
import { hasException, usualNames } from '../../examples/claims.ts'
import { SPOOFABLE_HEADERS } from '../../src/proxy/request-headers.ts'

export const IDENTITY = [
  ...['X-Forwarded-User', 'X-Forwarded-Email', 'X-Forwarded-Preferred-Username', 'X-Forwarded-Role'],
  ...['X-Forwarded-Groups', 'X-Menshen-Assertion'],
]

/** Those that have to be dropped, whatever anybody's list says. */
const BELIEVED = [
  ...['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'Proxy', 'X-Forwarded', 'True-Client-IP'],
  ...['CF-Connecting-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'Fastly-Client-IP', 'X-Host', 'Remote-User'],
  ...['X-Remote-User', 'X-Auth-Request-User', 'X-Auth-Request-Email', 'X-Auth-Request-Groups', 'X-Authenticated-User'],
  ...['X-Authenticated-Userid', 'X-WEBAUTH-USER', 'X-User', 'X-User-Id', 'IV-User', 'SM_USER', 'Front-End-Https'],
  ...['X-Scheme', 'X-HTTP-Host-Override', 'X-HTTP-Path-Override', 'X-Override-URL', 'X-Proxy-URL', 'X-Original-URL'],
  ...['X-Rewrite-URL', 'Forwarded', 'X-Real-IP', 'X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host'],
  ...['X-WX-OPENID', 'X-WX-UNIONID', 'X-ProxiedEntitiesChain', 'X-Ms-Original-Url', 'X-On-Behalf-Of', 'X-Admin-User'],
  ...['X-Forwarded-Uri', 'X-Forwarded-Method', 'X-Original-URI', 'X-Original-Method', 'X-Forwarded-Prefix'],
]

/** Every sign that a header's name can have besides letters and digits (RFC 9110, 5.6.2). */
const SIGNS = [..."!#$%&'*+-.^_`|~"]

/** Under which a client claims something: the names of the gateway's own list, those in every spelling that matter most. */
export function claims(): string[] {
  const listed = SPOOFABLE_HEADERS.flatMap(({ names }) => names).flatMap(usualNames)
  return [...new Set([...IDENTITY.flatMap(spellings), ...[...BELIEVED, ...listed].flatMap(usualSpellings)])]
}

/** The gateway's patterns, with endings that nobody has thought of; those with exceptions too, unless told otherwise. */
export function unknownClaims(cannot: readonly string[]): string[] {
  if (cannot.includes('patterns')) return []
  const patterns = SPOOFABLE_HEADERS.flatMap(({ names }) => names).filter(name => name.endsWith('*'))
  const known = patterns.filter(name => !(cannot.includes('exceptions') && hasException(name)))
  return known.map(name => name.replace('*', '-made-up'))
}

function spellings(name: string): string[] {
  const [all, last, first] = [/-/g, /-(?=[^-]*$)/, /-/].map(dash => SIGNS.map(sign => name.replace(dash, () => sign)))
  return [...(all ?? []), ...(last ?? []), ...(first ?? []), name.toLowerCase(), name.toUpperCase()]
}

function usualSpellings(name: string): string[] {
  const signs = ['-', '_', '.', '~'].map(sign => name.replaceAll(/[-_]/g, sign))
  return [...signs, name.toUpperCase(), name.replace('-', '_')]
}
