// What kind of place this is: somebody's own machine, or one that others rely on.

/** The values of NODE_ENV that mean it; so does none. */
const DEVELOPMENT: readonly string[] = ['development', 'dev', 'test']

/** Anything but the known words for development: a word that we do not know must not open a door. */
export function isProduction({ NODE_ENV }: { readonly NODE_ENV?: string | undefined }): boolean {
  return NODE_ENV !== undefined && !DEVELOPMENT.includes(NODE_ENV)
}

export function isUnknownEnvironment(name: string | undefined): boolean {
  return name !== undefined && name !== 'production' && !DEVELOPMENT.includes(name)
}

/** Whether an address leads to this very machine. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address)
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  )
}

export function portIn(address: string): number {
  const { port, protocol } = new URL(address)
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}
