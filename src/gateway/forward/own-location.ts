// An application that redirects to its own address means ours: nobody but the gateway can reach that one.

/** An absolute address, or one without its scheme: who is addressed, and what follows. */
const ABSOLUTE = /^(?:https?:)?\/\/([^/\\?#]+)(.*)$/is

/** The same place under `baseUrl`, if the address is one of `authorities`; what leads elsewhere stays as it is. */
export function ownLocation(location: string, authorities: ReadonlySet<string>, baseUrl: string): string {
  const [, authority, rest = ''] = ABSOLUTE.exec(location) ?? []
  // Whoever names a user means more than the address.
  if (authority === undefined || authority.includes('@')) return location
  const url = URL.parse(location, baseUrl)
  if (!url || !authorities.has(authorityOf(url))) return location
  // The rest as it was sent: in which encoding, only the application knows.
  return baseUrl + (rest.startsWith('/') ? rest : `/${rest}`)
}

/** Host and port without the scheme: one port is one application, and it may have been told that the browser uses https. */
export function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
}
