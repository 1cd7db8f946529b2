// The series as the console's plots want them: columns of numbers.
import { LOGIN_ERRORS } from '../../errors.ts'
import { quantile, type Slot, type Timed } from './slot.ts'
import { COUNTED } from './time-series.ts'

/** A number for each slot; `null` where there is none. */
type Column = readonly (number | null)[]

export interface Plot {
  /** When each slot began, in seconds. */
  readonly at: readonly number[]
  readonly signIns: Column
  /** By reason, those that there were. */
  readonly failures: Readonly<Record<string, Column>>
  readonly sessions: Column
  readonly requests: Readonly<Record<'admitted' | 'visitor' | 'refused' | 'error', Column>>
  /** In milliseconds. */
  readonly times: Readonly<Record<Timed, { readonly p50: Column; readonly p99: Column }>>
}

const REASONS = [...LOGIN_ERRORS, 'unknown_error']

export function plotOf(slots: readonly Slot[]): Plot {
  const counted = (name: string) => slots.map(({ counts }) => counts[name] ?? 0)
  const timed = (name: Timed) => ({
    p50: slots.map(slot => rounded(quantile(slot, name, 0.5))),
    p99: slots.map(slot => rounded(quantile(slot, name, 0.99))),
  })
  const failures = REASONS.map(reason => [reason, counted(COUNTED.failedSignIn(reason))] as const)
  return {
    at: slots.map(({ at }) => at / 1000),
    signIns: counted(COUNTED.signIn),
    failures: Object.fromEntries(failures.filter(([, column]) => column.some(number => number > 0))),
    sessions: slots.map(({ sessions }) => sessions ?? null),
    requests: {
      admitted: counted(COUNTED.request.admitted),
      visitor: counted(COUNTED.request.visitor),
      refused: counted(COUNTED.request.refused),
      error: counted(COUNTED.request.error),
    },
    times: { request: timed('request'), provider: timed('provider'), store: timed('store') },
  }
}

/** The sum of a column. */
export function sumOf(column: Column): number {
  return column.reduce<number>((sum, number) => sum + (number ?? 0), 0)
}

function rounded(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 100) / 100
}
