// The part of a browser's cookie jar that the tests need: one origin, paths, and expiry by a given clock.
// Secure cookies are kept and sent over plain http too, as a browser does on loopback.

interface Cookie {
  name: string
  value: string
  path: string
  expiresAt: number
}

export function createJar(now: () => number) {
  const cookies = new Map<string, Cookie>()

  const alive = () => [...cookies.values()].filter(cookie => cookie.expiresAt > now())

  return {
    keep(setCookie: string, requestPath: string): void {
      const cookie = readSetCookie(setCookie, requestPath, now())
      cookies.set(`${cookie.name};${cookie.path}`, cookie)
    },
    /** For the Cookie header of a request: those whose path covers it, the longest path first. */
    header(requestPath: string): string {
      const sent = alive().filter(cookie => covers(cookie.path, withoutQuery(requestPath)))
      sent.sort((a, b) => b.path.length - a.path.length)
      return sent.map(({ name, value }) => `${name}=${value}`).join('; ')
    },
    values: () => new Map(alive().map(({ name, value }) => [name, value])),
  }
}

function readSetCookie(setCookie: string, requestPath: string, now: number): Cookie {
  const [pair = '', ...rest] = setCookie.split(';')
  const [name, value] = splitOnce(pair)
  const attributes = new Map(rest.map(splitOnce).map(([key, given]) => [key.toLowerCase(), given]))
  const path = attributes.get('path') ?? ''
  return {
    name,
    value,
    path: path.startsWith('/') ? path : defaultPath(withoutQuery(requestPath)),
    expiresAt: expiryOf(attributes, now),
  }
}

/** Max-Age wins over Expires; with neither, the cookie lives as long as the browser. */
function expiryOf(attributes: Map<string, string>, now: number): number {
  const maxAge = attributes.get('max-age')
  if (maxAge !== undefined) return now + Number(maxAge) * 1000
  const expires = attributes.get('expires')
  return expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)
}

function defaultPath(requestPath: string): string {
  return requestPath.slice(0, requestPath.lastIndexOf('/')) || '/'
}

function covers(cookiePath: string, path: string): boolean {
  const folder = cookiePath.endsWith('/') ? cookiePath : `${cookiePath}/`
  return path === cookiePath || path.startsWith(folder)
}

function withoutQuery(path: string): string {
  return path.replace(/\?.*/s, '')
}

function splitOnce(pair: string): [string, string] {
  const [key = '', ...value] = pair.split('=')
  return [key.trim(), value.join('=').trim()]
}
