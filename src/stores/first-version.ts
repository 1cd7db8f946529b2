// Where the versions of a new key begin. From there they count up by one, so that a key that was removed and created
// anew does not meet a version that it had before.

import { randomInt } from 'node:crypto'

const BEGINNINGS = 2 ** 47

export function firstVersion(): number {
  return randomInt(BEGINNINGS)
}
