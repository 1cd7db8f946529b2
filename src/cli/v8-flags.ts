// How V8 compiles and collects garbage: the objects of a request die with it, and what answers requests is compiled in larger pieces.

import { setFlagsFromString } from 'node:v8'

/** From this version on V8 does not need to be told about buffers, and the flag is unknown. */
const BY_DEFAULT = [14, 8] as const
/** V8 takes 920: a signed-in check then consists of a dozen functions that call each other. */
const INLINED_BYTECODE = 3000

/** Called before anything else is loaded: V8 sets its limits by it. */
export function setV8Flags(version = process.versions.v8): void {
  // A response body passes through in buffers that are garbage a moment later; a small collection frees them. Older versions of V8
  // collect the whole heap after every few of them, which was half of the work of a large response.
  if (isBefore(version, BY_DEFAULT)) setFlagsFromString('--external-memory-accounted-in-global-limit')
  // Where most objects of a line of code live on for a while, V8 places all later ones among the old objects. There they keep the
  // whole request alive until the whole heap is collected. Checks took 5 to 8 % more beside 2,000 open connections, and up to a
  // quarter more in a process with a million sessions.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Requests of many kinds make the compiler more cautious; with more room, checks and pages take 5 % less.
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${INLINED_BYTECODE}`)
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
