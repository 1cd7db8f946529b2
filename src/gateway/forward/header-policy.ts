// Which of a browser's headers reach the application behind.
import { matchHeaders, NEVER_KEPT, plainName } from '../../settings/header-names.ts'
import type { Settings } from '../../settings/read.ts'
import { isClaim } from './claim-headers.ts'

export type HeaderPolicy = 'dropped' | 'kept' | 'filtered'

/** Browsers use a few dozen names; somebody who makes up new ones must not fill our memory. */
const MOST_POLICIES = 1000

/** By the name as it was sent. `identityNames` are the headers that tell the application who is there. */
export function createHeaderPolicies(
  settings: Pick<Settings, 'DROP_HEADERS' | 'KEEP_HEADERS' | 'FORWARD_ACCESS_TOKEN'>,
  identityNames: ReadonlySet<string>,
): (name: string) => HeaderPolicy {
  const isNeverKept = matchHeaders([
    ...NEVER_KEPT,
    ...identityNames,
    ...(settings.FORWARD_ACCESS_TOKEN ? ['authorization'] : []),
    ...(settings.DROP_HEADERS ?? []),
  ])
  const isKept = matchHeaders(settings.KEEP_HEADERS ?? [])
  const policies = new Map<string, HeaderPolicy>()

  function decide(plain: string): HeaderPolicy {
    if (isNeverKept(plain) || (isClaim(plain) && !isKept(plain))) return 'dropped'
    return plain === 'cookie' ? 'filtered' : 'kept'
  }

  return name => {
    const known = policies.get(name)
    if (known) return known
    const policy = decide(plainName(name))
    if (policies.size >= MOST_POLICIES) policies.clear()
    policies.set(name, policy)
    return policy
  }
}
