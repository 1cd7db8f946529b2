// How V8 collects garbage: the whole heap by the memory that buffers hold, not by every byte that was ever allocated in them; and
// new objects seldom, also after a quiet time.

import { setFlagsFromString } from 'node:v8'

/** From this version on it is V8's default, and the flag is unknown. */
const BY_DEFAULT = [14, 8] as const

/**
 * A response body passes through in buffers that are garbage a moment later; a small collection frees them. Older versions of V8
 * collect the whole heap after every few of them, which was half of the work of a large response. Called before anything else
 * is loaded: V8 sets its limits by it.
 */
export function setHeapFlag(version = process.versions.v8): void {
  if (isBefore(version, BY_DEFAULT)) setFlagsFromString('--external-memory-accounted-in-global-limit')
}

/** More than the largest space for new objects is of the smallest. */
const GROWTH_FACTOR = 32

/**
 * After half a minute without requests V8 gives most of the space for new objects back. Under load it takes it again by doubling,
 * each time after many collections: of the next 40,000 checks it made 250 instead of 15, 5 % of their work. With this it takes
 * all of it at once. Called when the start is over: in a process that only starts, it would be 45 MB that nothing needs.
 */
export function growNewSpaceAtOnce(): void {
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`)
}

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}
