// Headers that tell shared caches what they may keep. An answer for one user has none of them except our own Cache-Control.

/** Besides Cache-Control. Caches of several makers prefer these to it (RFC 9213 and its predecessors). */
export const FOR_SHARED_CACHES: readonly string[] = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'edge-control',
  'netlify-cdn-cache-control',
  'surrogate-control',
  'vercel-cdn-cache-control',
  'x-accel-expires',
]

/** All of them, in lower case. */
export const CACHE_HEADERS: ReadonlySet<string> = new Set(['cache-control', ...FOR_SHARED_CACHES])
