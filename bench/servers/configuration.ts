// The configuration that Menshen is measured with: a dozen rules, such as a company has them.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from './processes.ts'

const EVERYBODY = ['developer', 'common']

const RULES: readonly object[] = [
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

/** Gives the path of the file, for the setting CONFIG. */
export function writeConfiguration(more: object = {}): string {
  const file = join(folder, `configuration-${++files}.mjs`)
  writeFileSync(file, `export default ${JSON.stringify({ rules: RULES, ...more })}`)
  return file
}
