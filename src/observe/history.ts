// The history that the console plots: counts and durations of the last week, of all instances.

import { LOGIN_ERRORS } from '../errors.ts'
import { EVENTS } from '../events.ts'
import type { DataKeyring } from '../session/data-keys.ts'
import type { Store } from '../stores/store.ts'
import {
  addTime,
  count,
  createSlotHistory,
  quantile,
  type Range,
  type Slot,
  slotsOf,
  type TimedOperation,
} from './history-slots.ts'
import { createInstances, type Instance, WRITE_INTERVAL_MS } from './instances.ts'
import type { Observer } from './observed-request.ts'

export interface History {
  readonly observer: Observer
  /** Slot by slot, oldest first; `isPartial` if only this process is known, because the store is unavailable. */
  read(range: Range): Promise<{ readonly slots: Slot[]; readonly isPartial: boolean }>
  /** The processes that share the store and are alive. */
  instances(): Promise<Instance[]>
  /** From then on the history is written to the store. */
  begin(records: Records): void
  close(): Promise<void>
}

interface Records {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current'>
}

interface HistoryOptions {
  readonly instance: Instance
  readonly now: () => number
}

/** The names of the counts in a slot. */
export const COUNT_NAMES = {
  request: {
    admitted: 'request admitted',
    visitor: 'request visitor',
    refused: 'request refused',
    own: 'request own',
    error: 'request error',
  },
  signIn: 'sign_in',
  failedSignIn: (reason: string) => `sign_in_failed ${reason}`,
  event: (code: string) => `event ${code}`,
} as const

export function createHistory({ instance, now }: HistoryOptions): History {
  const history = createSlotHistory(now)
  let kept: ReturnType<typeof keep> | undefined

  function keep({ store, keyring }: Records) {
    const instances = createInstances({ store, keyring, instance, history, now })
    // Other parts report an unavailable store.
    const ignore = () => {}
    async function countSessions(): Promise<void> {
      history.current().sessions = await store.count()
    }
    async function save(hasEnded = false): Promise<void> {
      await countSessions()
      await instances.write(hasEnded)
    }
    const begun = instances
      .adopt()
      .then(() => save())
      .catch(ignore)
    const timer = setInterval(() => void save().catch(ignore), WRITE_INTERVAL_MS).unref()
    return {
      instances,
      countSessions,
      async close() {
        clearInterval(timer)
        await begun
        await save(true).catch(ignore)
      },
    }
  }

  return {
    observer: {
      onRequest({ outcome, isStream }, _status, ms) {
        const slot = history.current()
        count(slot, COUNT_NAMES.request[outcome])
        if (!isStream) addTime(slot, 'request', ms)
      },
      onWork(kind, _what, _result, seconds) {
        if (kind === 'provider' || kind === 'store') addTime(history.current(), kind, seconds * 1000)
      },
      onEvent(code, { reason }) {
        const slot = history.current()
        if (EVENTS[code].level !== 'info') count(slot, COUNT_NAMES.event(code))
        if (code === 'sign_in') count(slot, COUNT_NAMES.signIn)
        if (code === 'sign_in_failed') count(slot, COUNT_NAMES.failedSignIn(String(reason)))
      },
    },

    async read(range) {
      await kept?.countSessions().catch(() => {})
      const own = history.all()
      const others = await kept?.instances.others().catch(() => undefined)
      return { slots: slotsOf(range, [own, ...(others ?? [])], now()), isPartial: others === undefined }
    },

    instances: async () => (await kept?.instances.alive()) ?? [instance],

    begin(records) {
      kept = keep(records)
    },

    async close() {
      await kept?.close()
    },
  }
}

// The history as columns of numbers, for the plots of the console.

/** A number for each slot; `null` where there is none. */
export type Column = readonly (number | null)[]

export interface Plot {
  /** When each slot began, in seconds. */
  readonly at: readonly number[]
  readonly signIns: Column
  /** Keyed by reason; only reasons that occurred. */
  readonly failures: Readonly<Record<string, Column>>
  readonly sessions: Column
  readonly requests: Readonly<Record<'admitted' | 'visitor' | 'refused' | 'error', Column>>
  /** In milliseconds. */
  readonly times: Readonly<Record<TimedOperation, { readonly p50: Column; readonly p99: Column }>>
}

export const FAILURE_REASONS = [...LOGIN_ERRORS, 'unknown_error'] as const

export function plotOf(slots: readonly Slot[]): Plot {
  const counted = (name: string) => slots.map(({ counts }) => counts[name] ?? 0)
  const timed = (name: TimedOperation) => ({
    p50: slots.map(slot => rounded(quantile(slot, name, 0.5))),
    p99: slots.map(slot => rounded(quantile(slot, name, 0.99))),
  })
  const failures = FAILURE_REASONS.map(reason => [reason, counted(COUNT_NAMES.failedSignIn(reason))] as const)
  return {
    at: slots.map(({ at }) => at / 1000),
    signIns: counted(COUNT_NAMES.signIn),
    failures: Object.fromEntries(failures.filter(([, column]) => column.some(number => number > 0))),
    sessions: slots.map(({ sessions }) => sessions ?? null),
    requests: {
      admitted: counted(COUNT_NAMES.request.admitted),
      visitor: counted(COUNT_NAMES.request.visitor),
      refused: counted(COUNT_NAMES.request.refused),
      error: counted(COUNT_NAMES.request.error),
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
