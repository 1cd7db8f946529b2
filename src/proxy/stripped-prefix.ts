// The prefix of an upstream with `stripPrefix`: the application does not see it, the browser does.

import { OWN_PREFIX } from '../paths.ts'

export interface WithPrefix {
  readonly prefix: string
  /** The prefix as browsers send it; empty if the application sees it. */
  readonly strippedPrefix: string
}

/**
 * The path for the application. The rules have judged the path with the prefix. Several slashes after the prefix become one,
 * because a path that begins with two is the address of another host.
 */
export function pathForUpstream(upstream: WithPrefix, path: string): string {
  if (upstream.strippedPrefix === '') return path
  const end = endOfPrefix(upstream, path)
  return end < 0 ? '/' : path.slice(end).replace(/^\/+/, '/')
}

/**
 * The index of the slash after the prefix; negative if nothing follows. The prefix's letters can be escaped in the path, its
 * slashes cannot.
 */
function endOfPrefix({ prefix }: WithPrefix, path: string): number {
  let slash = 0
  for (let at = prefix.indexOf('/'); at >= 0 && slash >= 0; at = prefix.indexOf('/', at + 1))
    slash = path.indexOf('/', slash + 1)
  return slash
}

/** A path of the application as the browser sees it. A path that has the prefix already stays as it is, and so do our own. */
export function prefixedPath(strippedPrefix: string, path: string): string {
  if (hasPrefix(strippedPrefix, path) || hasPrefix(OWN_PREFIX, path)) return path
  return strippedPrefix + path
}

/** The path of one of our pages as the application sees it, for example in a Referer. */
export function withoutPrefix(strippedPrefix: string, path: string): string {
  if (!hasPrefix(strippedPrefix, path)) return path
  const rest = path.slice(strippedPrefix.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/**
 * The Destination of COPY and MOVE as the application sees it: without the prefix, and with the host that the application is
 * sent. The rules have judged it, and it leads to this upstream.
 */
export function destinationForUpstream(
  upstream: WithPrefix & { readonly hostHeader: string | undefined; readonly destination: { readonly origin: string } },
  destination: string,
): string {
  const { strippedPrefix, hostHeader } = upstream
  if (strippedPrefix === '' && hostHeader === undefined) return destination
  const [, origin = '', path = '/'] = /^([a-z]+:\/\/[^/]*)?(.*)$/is.exec(destination) ?? []
  const { protocol } = new URL(upstream.destination.origin)
  const sentOrigin = origin === '' || hostHeader === undefined ? origin : `${protocol}//${hostHeader}`
  return sentOrigin + pathForUpstream(upstream, path || '/')
}

function hasPrefix(prefix: string, path: string): boolean {
  if (!path.startsWith(prefix)) return false
  const next = path[prefix.length]
  return next === undefined || next === '/' || next === '?' || next === '#'
}

/**
 * A Location for the browser: an absolute path gets the prefix, and so does a relative one in the answer to the prefix itself,
 * which the application takes for `/`.
 */
export function prefixedLocation(upstream: WithPrefix, location: string, path: string): string {
  const { strippedPrefix } = upstream
  if (strippedPrefix === '' || /^(?:[a-z][a-z\d+.-]*:|\/\/)/i.test(location)) return location
  if (location.startsWith('/')) return prefixedPath(strippedPrefix, location)
  const isRelative = /^[^?#]/.test(location)
  return isRelative && endOfPrefix(upstream, path) < 0 ? `${strippedPrefix}/${location}` : location
}

const COOKIE_PATH = /(;\s*path\s*=\s*)([^;]*)/gi

/** Browsers refuse a `__Host-` cookie with any path but `/`. */
export function prefixedCookie(upstream: WithPrefix, cookie: string, path: string): string {
  const { strippedPrefix } = upstream
  if (strippedPrefix === '' || /^\s*__host-/i.test(cookie)) return cookie
  let hasPath = false
  const mapped = cookie.replace(COOKIE_PATH, (attribute: string, name: string, value: string) => {
    const path = value.trim()
    if (!path.startsWith('/')) return attribute
    hasPath = true
    return name + (path === '/' ? strippedPrefix : prefixedPath(strippedPrefix, path))
  })
  // For a cookie without a path the browser uses the folder of the request, which for the prefix itself is `/`.
  return hasPath || endOfPrefix(upstream, path) >= 0 ? mapped : `${mapped}; Path=${strippedPrefix}`
}
