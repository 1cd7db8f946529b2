// What is wrong with settings together although each of them is right by itself.

import { matchHeaders, NEVER_KEPT } from '../util/header-names.ts'
import { isLoopback, isProduction } from './deployment.ts'
import type { Checked, Name } from './settings.ts'

const IDENTITY_SETTINGS = [
  'IDENTITY_USER',
  'IDENTITY_EMAIL',
  'IDENTITY_NAME',
  'IDENTITY_ROLE',
  'IDENTITY_ASSERTION',
] as const

export function conflictsIn(checked: Checked, isGiven: (name: Name) => boolean): string[] {
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

/** In production only this machine may be reached without https, unless the risk was accepted. */
export function plainHttpIn(settings: Checked): string[] {
  if (!demandsHttps(settings)) return []
  return (['BASE_URL', 'AUTH_URL', 'LOGOUT_URL', 'JWKS_URL'] as const)
    .filter(name => isPlainHttp(settings[name] ?? ''))
    .map(name => `${name} is "${settings[name]}"; ${HTTPS_EXPECTED}`)
}

const HTTPS_EXPECTED =
  'in production expected an https address, for example https://app.example.com (ALLOW_PLAIN_HTTP=true accepts the risk).'

export function demandsHttps(settings: Pick<Checked, 'NODE_ENV' | 'ALLOW_PLAIN_HTTP'>): boolean {
  return isProduction(settings) && !settings.ALLOW_PLAIN_HTTP
}

/** An address by which others on the way could read along. */
export function isPlainHttp(address: string): boolean {
  return URL.canParse(address) && new URL(address).protocol === 'http:' && !isLoopback(address)
}

/** The same of addresses that were put together from several places: what is wrong with them, each by its name. */
export function addressProblems(
  addresses: Readonly<Record<string, string | undefined>>,
  settings: Pick<Checked, 'NODE_ENV' | 'ALLOW_PLAIN_HTTP'>,
): string[] {
  // What still has a hole is missing, which is said elsewhere.
  const whole = Object.entries(addresses).filter(([, url]) => url !== undefined && !url.includes('{'))
  return whole.flatMap(([name, url = '']) => {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      return [`${name} is "${shown(url)}"; expected an http or https address, for example https://idp.example.com.`]
    return demandsHttps(settings) && isPlainHttp(url) ? [`${name} leads to "${shown(url)}"; ${HTTPS_EXPECTED}`] : []
  })
}

function shown(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 200)
}
