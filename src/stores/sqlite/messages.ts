// The messages to the thread of the embedded store, and its answers.

import type { Change, ChangeResult } from './changes.ts'
import type { Fault } from './faults.ts'

export interface ChangeBatch {
  readonly changes: readonly Change[]
  /** When to give up on the lock of another process, by `monotonicMs`. */
  readonly lockUntil: number
}

export type ChangeOutcome = { readonly result: ChangeResult } | { readonly fault: Fault }

export interface BatchReply {
  /** One for each change. */
  readonly outcomes: readonly ChangeOutcome[]
  /** How often the file was opened. A different number means that it may be another file. */
  readonly opened: number
}

/** One clock for all threads: the start of a thread is part of a caller's deadline. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}

/** Sent in place of a batch: closes the file and ends the thread. */
export const CLOSE_MESSAGE = 'close'
