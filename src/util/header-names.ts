// Header names: how they are compared, and which are never passed on from a client.

import { KEY_HEADER } from './key-form.ts'

/** Many applications treat dashes, underscores or all other special characters alike, so names that differ only there are equal. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

/** Names are in their plain form. A name that ends in `*` matches all names that begin with the rest. */
export function matchHeaders(names: readonly string[]): (plain: string) => boolean {
  const whole = new Set(names)
  const prefixes = names.filter(name => name.endsWith('*')).map(name => name.slice(0, -1))
  return plain => whole.has(plain) || prefixes.some(prefix => plain.startsWith(prefix))
}

/** Valid for one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
]

/** Headers that the gateway sets, and `Expect`, which it sends where a body waits. */
const SET_BY_GATEWAY = [
  ...['expect', 'host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-prefix', 'x-forwarded-proto'],
  'x-request-id',
]

/** In their plain form. Keys are only for us. */
export const ALWAYS_REMOVED: readonly string[] = [...HOP_BY_HOP, ...SET_BY_GATEWAY, KEY_HEADER]

// Headers that tell shared caches what they may keep. An answer for one user has none of them except our own Cache-Control.

/** Besides Cache-Control. The caches of several vendors prefer these to it (RFC 9213 and its predecessors). */
export const SHARED_CACHE_HEADERS: readonly string[] = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'edge-control',
  'netlify-cdn-cache-control',
  'surrogate-control',
  'vercel-cdn-cache-control',
  'x-accel-expires',
]

/** All of them, in lower case. */
export const CACHE_HEADERS: ReadonlySet<string> = new Set(['cache-control', ...SHARED_CACHE_HEADERS])
