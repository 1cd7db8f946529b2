// What is wrong with settings together although each of them is right by itself.
import { isLoopback, isProduction } from './deployment.ts'
import { matchHeaders, NEVER_KEPT } from './header-names.ts'
import type { Checked, Name } from './read.ts'

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
  if (!isProduction(settings) || settings.ALLOW_PLAIN_HTTP) return []
  return (['BASE_URL', 'AUTH_URL', 'LOGOUT_URL', 'JWKS_URL'] as const)
    .filter(name => settings[name]?.startsWith('http:') && !isLoopback(settings[name]))
    .map(
      name =>
        `${name} is "${settings[name]}"; in production expected an https address, for example https://app.example.com (ALLOW_PLAIN_HTTP=true accepts the risk).`,
    )
}
