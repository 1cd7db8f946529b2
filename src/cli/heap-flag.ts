// When V8 collects the whole heap: by the memory that buffers hold, not by every byte that was ever allocated in them.

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

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}
