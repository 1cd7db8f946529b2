// Errors that no code handles. A rejected promise is logged and counted, and the process continues. After an uncaught exception
// the state of the process is unknown: it finishes its requests and exits, and another worker replaces it. The library leaves
// both to the application around it.

import cluster from 'node:cluster'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { FAILING } from './workers.ts'

/** How long a worker with an uncaught exception waits for another worker to serve. */
const REPLACEMENT_TIMEOUT_MS = 10_000

type CloseWithReason = (why: { reason: string }) => void

/** `reportAtStart` writes only to the log. */
export function handleUncaughtErrors(reportAtStart: Report) {
  let report = reportAtStart
  let close: CloseWithReason | undefined
  let isFailing = false

  function note(reason: 'rejection' | 'exception', thrown: unknown): void {
    const error = thrown instanceof Error ? thrown : new Error(`a ${typeof thrown} was thrown, not an error`)
    report('internal_error', { ...errorFields(error), reason })
  }

  process.on('unhandledRejection', thrown => note('rejection', thrown))
  process.on('uncaughtException', thrown => {
    note('exception', thrown)
    process.exitCode = 1
    // The start has failed.
    if (!close) process.exit()
    if (isFailing) return
    isFailing = true
    const end = () => close?.({ reason: 'internal_error' })
    if (!cluster.isWorker) return end()
    process.send?.(FAILING)
    setTimeout(end, REPLACEMENT_TIMEOUT_MS).unref()
  })

  return {
    /** Called when the process serves: from now on it has something to finish. `reportAndCount` also counts events. */
    watch(closeFor: CloseWithReason, reportAndCount: Report): void {
      close = closeFor
      report = reportAndCount
    },
  }
}
