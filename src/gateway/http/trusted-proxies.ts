// Whom to believe about where a request came from: X-Forwarded-* and X-Original-* count only from proxies that the
// settings name.
import { type Networks, plainAddress, withoutPort } from '../../settings/networks/networks.ts'
import { splitList } from './list-header.ts'
import type { Visit } from './request.ts'

export { plainAddress }

export function isTrusted(proxies: Networks | undefined, address: string): boolean {
  return proxies?.has(address) ?? false
}

/** Whoever the nearest proxy that is not ours saw. */
export function clientAddress(
  proxies: Networks | undefined,
  { address, headers }: Pick<Visit, 'address' | 'headers'>,
): string {
  const chain = [...splitList(headers['x-forwarded-for']).map(withoutPort), address]
  for (const hop of chain.reverse()) if (!isTrusted(proxies, hop)) return plainAddress(hop)
  return plainAddress(chain.at(-1) ?? address)
}
