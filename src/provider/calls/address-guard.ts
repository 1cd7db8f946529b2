// Judges where a name leads at the moment of connecting to it. Metadata is judged when it is read, but a name in it can lead
// to the open network then and into a private one later (DNS rebinding).
import dns from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { MenshenError } from '../../errors.ts'
import { hostOf, isPrivateAddress } from '../oidc/private-address.ts'
import type { ProviderPlan } from '../plan.ts'
import type { BoundedFetch } from './bounded-fetch.ts'

export interface AddressGuard {
  /** For every call but discovery. */
  readonly lookup: LookupFunction
  /** For discovery alone. */
  readonly issuerLookup: LookupFunction
  /** From the answer to discovery on it is known whether the issuer is in a private network, and so may lead us there. */
  learnFrom(discovery: BoundedFetch): BoundedFetch
}

type GuardedPlan = Pick<ProviderPlan, 'issuer' | 'discoveryUrl' | 'endpoints' | 'emailStep'>

export function createAddressGuard({ issuer = '', discoveryUrl, endpoints, emailStep }: GuardedPlan): AddressGuard {
  const named = [issuer, discoveryUrl, ...Object.values(endpoints), emailStep?.url].filter(url => url !== undefined)
  /** Where the operator sends us, we go. */
  const ownHosts = new Set(named.map(hostOf))
  let issuerIsPrivate = isIP(hostOf(issuer)) !== 0 && isPrivateAddress(hostOf(issuer))
  let ledToPrivate = issuerIsPrivate

  return {
    lookup: judging((host, isPrivate) => !isPrivate || issuerIsPrivate || ownHosts.has(host)),

    issuerLookup: judging((_host, isPrivate) => {
      ledToPrivate = isPrivate
      return true
    }),

    learnFrom: discovery => async (url, init) => {
      const response = await discovery(url, init)
      // Not before: whoever answers here has proved to be the issuer. A name alone proves nothing.
      issuerIsPrivate = ledToPrivate
      return response
    },
  }
}

function judging(admits: (host: string, isPrivate: boolean) => boolean): LookupFunction {
  return (host, options, callback) => {
    dns.lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      const isPrivate = found.some(({ address }) => isPrivateAddress(address))
      if (!admits(host, isPrivate))
        return callback(
          new MenshenError('provider_answer', 'an address of the metadata leads into a private network'),
          '',
        )
      if (options.all) return callback(null, found)
      const [first = { address: '', family: 0 }] = found
      callback(null, first.address, first.family)
    })
  }
}
