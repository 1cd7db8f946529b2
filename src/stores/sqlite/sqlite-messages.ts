// What the thread of the embedded store is sent, and what it answers.

import type { Change, ChangeResult } from './sqlite-changes.ts'
import type { Fault } from './sqlite-faults.ts'

export interface Batch {
  readonly changes: readonly Change[]
  /** How long to wait for the lock of another process. */
  readonly lockMs: number
}

export type Outcome = { readonly result: ChangeResult } | { readonly fault: Fault }

export interface Answer {
  /** One for each change. */
  readonly outcomes: readonly Outcome[]
  /** How often the file was opened. Another number means that it may be another file. */
  readonly opened: number
}

/** Instead of a batch: closes the file and ends the thread. */
export const CLOSE = 'close'
