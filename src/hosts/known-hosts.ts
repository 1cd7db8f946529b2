// What BASE_URL knows of the hosts whose users it signs in.

import type { Rules } from '../access/rules.ts'
import type { Settings } from '../config/settings.ts'
import type { KnownHosts } from './context.ts'

export function createKnownHosts(
  { BASE_URL }: Pick<Settings, 'BASE_URL'>,
  rules: ReadonlyMap<string, Rules>,
  tickets: Pick<KnownHosts, 'tickets' | 'codes' | 'mayHandOff'>,
): KnownHosts {
  const { protocol } = new URL(BASE_URL)
  const byOrigin = new Map([...rules.keys()].map(name => [`${protocol}//${name}`, name]))
  return { ...tickets, rules, nameOf: origin => byOrigin.get(origin) }
}
