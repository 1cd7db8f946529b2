// What it takes that a disk that fails or hangs is an error of the store, and never the end of the process.

import { MenshenError } from '../../errors.ts'
import { inTime } from '../deadline.ts'

/** A process that was stopped in the midst of a write holds up the others, too. */
const DISK_DEADLINE_MS = 10_000

export function unavailable(directory: string, problem: string, cause: unknown): MenshenError {
  return new MenshenError('store_unavailable', `The store in ${directory} ${problem}.`, cause)
}

/** Resolves when the disk has done it. */
export function onDisk<Result>(work: Promise<Result>): Promise<Result> {
  return inTime(withReason(work), DISK_DEADLINE_MS)
}

/** lmdb-js gives the reason of a failed write in a second promise, which ends the process if nobody looks at it. */
async function withReason<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (failure) {
    await (failure as { commitError?: Promise<never> }).commitError
    throw failure
  }
}
