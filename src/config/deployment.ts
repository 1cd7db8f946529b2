// Whether this is production or a developer's own machine.

/** The values of NODE_ENV that mean development, as does an absent one. */
const DEVELOPMENT: readonly string[] = ['development', 'dev', 'test']

/** Any other value means production: an unknown value must not weaken a check. */
export function isProduction({ NODE_ENV }: { readonly NODE_ENV?: string | undefined }): boolean {
  return NODE_ENV !== undefined && !DEVELOPMENT.includes(NODE_ENV)
}

export function isUnknownEnvironment(name: string | undefined): boolean {
  return name !== undefined && name !== 'production' && !DEVELOPMENT.includes(name)
}

/** Whether an address leads to this machine. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address)
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  )
}

/** The host that browsers connect to: a name below localhost is this machine, whether or not DNS knows it (RFC 6761). */
export function browserHostname(hostname: string): string {
  return hostname.endsWith('.localhost') ? 'localhost' : hostname
}

export function portIn(address: string): number {
  const { port, protocol } = new URL(address)
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}
