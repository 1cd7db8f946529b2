// The versions of a key count up by one. Where those of a new key begin is left to chance, so that one that was removed and
// created anew does not meet a version that it had before.

import { randomInt } from 'node:crypto'

const BEGINNINGS = 2 ** 47

export function firstVersion(): number {
  return randomInt(BEGINNINGS)
}

/** Of what is written in the place of `old`. */
export function nextVersion(old: { readonly version: number } | undefined): number {
  return (old?.version ?? firstVersion()) + 1
}
