// Checks the address of a host name when a connection is opened. Metadata is checked when it is read, but a name in it can
// resolve to a public address then and to a private one later (DNS rebinding).

import dns from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { MenshenError } from '../errors.ts'
import type { BoundedFetch } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'

export interface AddressGuard {
  /** For every call except discovery. */
  readonly lookup: LookupFunction
  /** Only for discovery. */
  readonly issuerLookup: LookupFunction
  /** Learns from the answer to discovery whether the issuer is in a private network, and so may name addresses there. */
  learnFrom(discovery: BoundedFetch): BoundedFetch
}

type GuardedPlan = Pick<ProviderPlan, 'issuer' | 'discoveryUrl' | 'endpoints' | 'emailStep'>

export function createAddressGuard({ issuer = '', discoveryUrl, endpoints, emailStep }: GuardedPlan): AddressGuard {
  const named = [issuer, discoveryUrl, ...Object.values(endpoints), emailStep?.url].filter(url => url !== undefined)
  /** Hosts that the operator configured are always allowed. */
  const ownHosts = new Set(named.map(hostOf))
  let issuerIsPrivate = isIP(hostOf(issuer)) !== 0 && isPrivateAddress(hostOf(issuer))
  let resolvedToPrivate = issuerIsPrivate

  return {
    lookup: guardedLookup((host, isPrivate) => !isPrivate || issuerIsPrivate || ownHosts.has(host)),

    issuerLookup: guardedLookup((_host, isPrivate) => {
      resolvedToPrivate = isPrivate
      return true
    }),

    learnFrom: discovery => async (url, init) => {
      const response = await discovery(url, init)
      // Not before the answer, which proves that this is the issuer. Its name proves nothing.
      issuerIsPrivate = resolvedToPrivate
      return response
    },
  }
}

function guardedLookup(admits: (host: string, isPrivate: boolean) => boolean): LookupFunction {
  return (host, options, callback) => {
    dns.lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      const isPrivate = found.some(({ address }) => isPrivateAddress(address))
      if (!admits(host, isPrivate))
        return callback(new MenshenError('provider_answer', 'an address in the metadata is in a private network'), '')
      if (options.all) return callback(null, found)
      const [first = { address: '', family: 0 }] = found
      callback(null, first.address, first.family)
    })
  }
}

// Addresses of private networks and of this machine: metadata from outside must not lead there.

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
  // A BlockList recognises an IPv4 address within IPv6 (::ffff:10.0.0.1).
  return family === 0 || PRIVATE.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether the host of this address is, or resolves to, a private one. Throws if it does not resolve. */
export async function resolvesToPrivate(url: string): Promise<boolean> {
  const host = hostOf(url)
  if (isIP(host)) return isPrivateAddress(host)
  const found = await dns.promises.lookup(host, { all: true })
  return found.some(({ address }) => isPrivateAddress(address))
}

/** The host name without brackets, as DNS and sockets expect it. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : ''
}
