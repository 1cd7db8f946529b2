// The generation of the files: a number that every write changes, so that one look at it tells whether anything has.

import { getLastVersion } from 'lmdb'
import { firstVersion } from '../first-version.ts'
import type { LmdbFiles } from './lmdb-files.ts'

type Generations = Pick<LmdbFiles, 'generations'>

/** Its version is the generation. On the disk it has the name that it had first. */
const GENERATION = 'mark'
const NOTHING = Buffer.alloc(0)

export function readGeneration({ generations }: Generations): number {
  return generations.getBinaryFast(GENERATION) === undefined ? 0 : getLastVersion()
}

export function beginGeneration({ generations }: Generations): void {
  generations.put(GENERATION, NOTHING, firstVersion())
}
