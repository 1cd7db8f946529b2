// The configuration that Menshen is measured with: a dozen rules, as a company might have; or more, or none.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENT_SECRET } from './client-secret.ts'
import { folder } from './processes.ts'

const EVERYBODY = ['developer', 'common']

const USUAL_RULES: readonly object[] = [
  { path: '/', roles: EVERYBODY },
  { path: '/admin', roles: ['developer'] },
  { path: '/admin/help', roles: EVERYBODY },
  { path: '/api', roles: EVERYBODY },
  { path: '/api/internal', roles: ['developer'] },
  { path: '/assets', public: true },
  { path: '/finance', groups: ['finance'], users: ['lisi'] },
  { path: '/finance/forms', roles: EVERYBODY, methods: ['GET', 'HEAD'] },
  { path: '/health', public: true, exact: true },
  { path: '/reports', roles: EVERYBODY },
  { path: '/reports/internal', roles: ['developer'] },
  { path: '/wiki', roles: EVERYBODY },
]
let files = 0

/** Returns the path of the file, for the setting CONFIG. */
export function writeConfiguration(more: object = {}): string {
  const file = join(folder, `configuration-${++files}.mjs`)
  writeFileSync(file, `export default ${JSON.stringify({ rules: USUAL_RULES, ...more })}`)
  return file
}

/** The usual rules, each with networks, hours and maxAge that every request of a benchmark meets. */
export function withConditions(): object[] {
  const networks = ['10.0.0.0/8', '192.168.0.0/16', '127.0.0.0/8', '203.0.113.0/24', '2001:db8::/32', '::1']
  const hours = { from: '00:00', to: '24:00', zone: 'Asia/Shanghai' }
  return USUAL_RULES.map(rule => ('public' in rule ? rule : { ...rule, networks, hours, maxAge: 7 * 86_400 }))
}

/** The usual rules, each also for programs with a key. */
export function withKeys(): object[] {
  return USUAL_RULES.map(rule => ('public' in rule ? rule : { ...rule, keys: 'personal' }))
}

export function manyRules(count: number): object[] {
  const more = Math.max(0, count - USUAL_RULES.length)
  const others = Array.from({ length: more }, (_, n) => ({ path: `/department-${n % 50}/page-${n}`, roles: EVERYBODY }))
  return [...USUAL_RULES.slice(0, count), ...others]
}

/** All providers are at the same address. */
export function manyProviders(count: number, auth_url: string): object {
  const one = (n: number) => ({
    preset: 'idaas',
    name: `Provider ${n}`,
    vars: { auth_url },
    clientId: 'bench',
    clientSecret: CLIENT_SECRET,
  })
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`provider${n}`, one(n)]))
}
