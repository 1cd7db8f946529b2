// Signals: SIGTERM and SIGINT stop the process gracefully, SIGHUP reloads.

import cluster from 'node:cluster'
import { isatty } from 'node:tty'
import type { Environment } from '../config/settings.ts'
import type { Report } from '../events.ts'

export interface Reopenable {
  reopenFiles(): void
}

/** Listens from the beginning of a start. An early signal is passed on as soon as there is a receiver. */
export function listenForSighup(): { forwardTo(to: Reopenable): void } {
  let reopen = () => {
    isPending = true
  }
  let isPending = false
  if (!isatty(0) && !isatty(1)) process.on('SIGHUP', () => reopen())
  return {
    forwardTo(to) {
      reopen = () => to.reopenFiles()
      if (isPending) reopen()
    },
  }
}

// Stops the process gracefully: on a signal, or when the npm that started it has exited.

export interface Closable {
  close(): Promise<void>
}

/** The values of npm_lifecycle_event if npm starts us. */
const NPM_STARTS = ['start', 'npx']

/** The process between npm and us, if npm started us. */
export function npmParentOf({ npm_lifecycle_event: event = '' }: Environment): number | undefined {
  return NPM_STARTS.includes(event) ? process.ppid : undefined
}

const PARENT_CHECK_MS = 250
/** npm passes on a signal that a terminal or a service manager has sent to all processes: it arrives twice within milliseconds. */
const SAME_SIGNAL_MS = 1000

/**
 * Closes the parts one after another on a signal, and exits with `process.exitCode`. `npmParent` is the process between npm and us,
 * if npm started us. The returned function closes them for another reason.
 */
export function closeOnSignal(
  running: readonly Closable[],
  report: Report,
  npmParent: number | undefined,
): (why: { reason: string }) => void {
  let closing = false
  let firstAt = 0
  const close = (why: { signal: string } | { reason: string }) => {
    // Ctrl-C and service managers signal every process, and the primary signals its workers again.
    if (closing && cluster.isWorker) return
    if (closing && performance.now() - firstAt < SAME_SIGNAL_MS) return
    if (closing) {
      for (const part of running) void part.close()
      process.exit(1)
    }
    closing = true
    firstAt = performance.now()
    report('stopping', why)
    void closeAll(running, report)
  }
  process.on('SIGTERM', signal => close({ signal }))
  process.on('SIGINT', signal => close({ signal }))
  if (npmParent !== undefined && cluster.isPrimary)
    onExit(npmParent, () => closing || close({ reason: 'npm has ended' }))
  return why => {
    if (!closing) close(why)
  }
}

async function closeAll(running: readonly Closable[], report: Report): Promise<void> {
  try {
    for (const part of running) await part.close()
    report('stopped')
    process.exit()
  } catch (error) {
    report('close_failed', { err: error })
    process.exit(1)
  }
}

/** npm signals only the shell in between, and many shells exit without a signal to us. */
function onExit(parent: number, act: () => void): void {
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    act()
  }, PARENT_CHECK_MS).unref()
}
