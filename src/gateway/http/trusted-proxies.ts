// Whom to believe about where a request came from: X-Forwarded-* and X-Original-* count only from proxies that the
// settings name.
import { type BlockList, isIPv6 } from 'node:net'
import { splitList } from './list-header.ts'
import type { Visit } from './request.ts'

export function isTrusted(proxies: BlockList | undefined, address: string): boolean {
  const plain = plainAddress(address)
  return proxies?.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4') ?? false
}

/** Whoever the nearest proxy that is not ours saw. */
export function clientAddress(
  proxies: BlockList | undefined,
  { address, headers }: Pick<Visit, 'address' | 'headers'>,
): string {
  const chain = [...splitList(headers['x-forwarded-for']), address]
  for (const hop of chain.reverse()) if (!isTrusted(proxies, hop)) return plainAddress(hop)
  return plainAddress(chain.at(-1) ?? address)
}

/** An IPv4 address that a dual-stack socket shows as IPv6. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
