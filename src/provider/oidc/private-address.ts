// Whether an address is one of a private network or of this machine: metadata from outside must not lead us there.
import dns from 'node:dns'
import { BlockList, isIP } from 'node:net'

const PRIVATE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
  ['64:ff9b::', 96],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv6')

export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  // A BlockList sees an IPv4 address in an IPv6 one (::ffff:10.0.0.1) by itself.
  return family === 0 || PRIVATE.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether the host of this address is, or resolves to, a private one. Throws if it does not resolve. */
export async function leadsToPrivate(url: string): Promise<boolean> {
  const host = hostOf(url)
  if (isIP(host)) return isPrivateAddress(host)
  const found = await dns.promises.lookup(host, { all: true })
  return found.some(({ address }) => isPrivateAddress(address))
}

/** As a name server and a socket want it. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : ''
}
