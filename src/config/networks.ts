// The networks that a setting names, and whether an address is in one of them.
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net'

/** More proxies than any deployment has; clients without one are looked up only once in a while. */
const MAX_CACHED_ADDRESSES = 1000
/** Networks with fewer bits are vast: 10.0.0.0/8 and fc00::/7 are the largest private networks. */
const MIN_PREFIX_LENGTH = { ipv4: 8, ipv6: 7 } as const
/** No address is longer. */
const MAX_ADDRESS_LENGTH = 45

/**
 * Networks never change once they are read, so the result for an address does not change either. Nearly every request asks about
 * the same few peers, and a search would cost as much as finding the session.
 */
export class Networks {
  readonly #list = new BlockList()
  readonly #maxCached: number
  readonly #cache = new Map<string, boolean>()
  #isTooBroad = false

  constructor(maxCached = MAX_CACHED_ADDRESSES) {
    this.#maxCached = maxCached
  }

  /** Each network as text. */
  get rules(): readonly string[] {
    return this.#list.rules
  }

  /** Whether one of them is larger than any private network: it contains addresses of strangers. */
  get isTooBroad(): boolean {
    return this.#isTooBroad
  }

  /** False if it is not an address or network. */
  add(network: string): boolean {
    const [base = '', bits, more] = network.split('/')
    const version = isIP(base)
    if (!version || more !== undefined) return false
    const family = version === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) this.#list.addAddress(base, family)
    else if (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32))
      this.#list.addSubnet(base, Number(bits), family)
    else return false
    if (bits !== undefined && Number(bits) < MIN_PREFIX_LENGTH[family]) this.#isTooBroad = true
    return true
  }

  has(address: string): boolean {
    return this.#cache.get(address) ?? this.#search(address)
  }

  #search(address: string): boolean {
    const plain = plainAddress(address)
    const found = this.#list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
    if (this.#cache.size >= this.#maxCached) this.#cache.clear()
    if (address.length <= MAX_ADDRESS_LENGTH) this.#cache.set(address, found)
    return found
  }
}

/** Whether an address is one of the proxies that a setting names. */
export function isTrusted(proxies: Networks | undefined, address: string): boolean {
  return proxies?.has(address) ?? false
}

/** Reads networks separated by commas or spaces; `wrong` is the first text that is not a network. */
export function readNetworks(text: string): Networks | { readonly wrong: string } {
  const networks = new Networks()
  const wrong = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .find(network => !networks.add(network))
  return wrong === undefined ? networks : { wrong }
}

/**
 * The address without the port of the connection, which some proxies add (`192.0.2.1:4711`, `[2001:db8::1]:4711`) and which differs
 * for each connection.
 */
export function withoutPort(hop: string): string {
  const [, address] = /^\[([^\]]*)\](?::\d+)?$/.exec(hop) ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop) ?? []
  return address ?? hop
}

/** An IPv4 address that a dual-stack socket shows as IPv6. */
export function plainAddress(address: string): string {
  if (!/^[0:]*:ffff:/i.test(address)) return address
  const plain = address.replace(IPV4_MAPPED_PREFIX, '')
  if (plain !== address || !isIPv6(address)) return plain
  // A proxy may write every group of it, or the last two in hexadecimal digits.
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(IPV4_MAPPED_PREFIX, '')
}

const IPV4_MAPPED_PREFIX = /^::ffff:(?=\d+\.)/i

/** The network of an address: one household has a whole /64 of IPv6 addresses. */
export function network(address: string): string {
  if (!isIPv6(address)) return address
  // A proxy in front may write it in capitals or with leading zeros.
  const [head = '', tail] = new SocketAddress({ address, family: 'ipv6' }).address.split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const before = groups(head)
  const after = groups(tail ?? '')
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
