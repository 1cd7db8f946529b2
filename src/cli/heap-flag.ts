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

/** Whether an earlier version knows the flag was not tried. One that does not would write a complaint to the terminal. */
const WITH_COUNT = [14, 6] as const
/** More than the largest space for new objects is of the smallest. */
const GROWTH_FACTOR = 32

/**
 * After half a minute without requests V8 collects to give memory back: 57 of 142 MB. The next requests ran at 0.75 of the rate of a
 * fresh process, and after 50,000 of them still at 0.9; without that collection, at 0.88 and then at 0.97 (one noisy run). Probably it drops
 * hidden classes that only requests have, and the machine code that relies on them.
 *
 * V8 also gives the space for new objects back when there are few. Under load it takes it again by doubling, each time after many
 * collections: 250 instead of 15 for 40,000 checks, 5 % of their work. With the factor it takes all of it at once. From the
 * beginning that would be 45 MB more at the start, so that this is called when the start is over.
 */
export function keepSpeedWhenQuiet(version = process.versions.v8): void {
  if (!isBefore(version, WITH_COUNT)) setFlagsFromString('--memory-reducer-gc-count=0')
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`)
}

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}
