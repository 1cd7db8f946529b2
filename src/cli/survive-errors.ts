// Errors that no code handles. A rejected promise is logged and counted, and the process goes on. After an uncaught exception
// the state of the process is unknown: it finishes its requests and exits, and another worker takes its place. The library leaves
// both to the application around it.

import cluster from 'node:cluster'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { FAILING } from './workers.ts'

/** How long a worker with an uncaught exception waits for another one that serves. */
const SUCCESSOR_WITHIN_MS = 10_000

type CloseFor = (why: { reason: string }) => void

/** `reportAtStart` writes to the log alone. */
export function surviveErrors(reportAtStart: Report) {
  let report = reportAtStart
  let close: CloseFor | undefined
  let isFailing = false

  function note(reason: 'rejection' | 'exception', thrown: unknown): void {
    const error = thrown instanceof Error ? thrown : new Error(`a ${typeof thrown} was thrown, not an error`)
    report('internal_error', { ...errorFields(error), reason })
  }

  process.on('unhandledRejection', thrown => note('rejection', thrown))
  process.on('uncaughtException', thrown => {
    note('exception', thrown)
    process.exitCode = 1
    // A start that fails is over.
    if (!close) process.exit()
    if (isFailing) return
    isFailing = true
    const end = () => close?.({ reason: 'internal_error' })
    if (!cluster.isWorker) return end()
    process.send?.(FAILING)
    setTimeout(end, SUCCESSOR_WITHIN_MS).unref()
  })

  return {
    /** The process serves: it has something to finish from now on. `reportAndCount` counts events, too. */
    watch(closeFor: CloseFor, reportAndCount: Report): void {
      close = closeFor
      report = reportAndCount
    },
  }
}
