// When V8 collects the whole heap: by what buffers hold, not by every byte that was ever allocated in them.
import { setFlagsFromString } from 'node:v8'

/** From here on V8 does it by itself, and no longer knows the flag. */
const BY_DEFAULT = [14, 8] as const

/**
 * Whatever passes through on its way from an application to a browser is a buffer that is dead a moment later, and whose
 * memory the next small collection gives back. Older versions of V8 collect the whole heap after every few of them all the
 * same, which was half of the work of a large answer. Best before anything else is loaded: V8 sets its limits by this.
 */
export function countHeldBuffers(version = process.versions.v8): void {
  if (isBefore(version, BY_DEFAULT)) setFlagsFromString('--external-memory-accounted-in-global-limit')
}

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}
