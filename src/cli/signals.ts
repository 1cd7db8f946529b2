// Signals: SIGTERM and SIGINT stop the process gracefully, SIGHUP reloads.

import cluster from 'node:cluster'
import { isatty } from 'node:tty'
import type { Report } from '../events.ts'

export interface Reopenable {
  reopenFiles(): void
}

/** Listens from the beginning of a start on, and hands on what came once there is somebody to hand it to. */
export function listenForHangUps(): { hand(to: Reopenable): void } {
  let reopen = () => {
    isOwed = true
  }
  let isOwed = false
  if (!isatty(0) && !isatty(1)) process.on('SIGHUP', () => reopen())
  return {
    hand(to) {
      reopen = () => to.reopenFiles()
      if (isOwed) reopen()
    },
  }
}

// Ends the process politely when it is asked to: by a signal, or by the end of the npm that started it.

export interface Closable {
  close(): Promise<void>
}

const PARENT_CHECK_MS = 250
/** npm passes on what a terminal or a service manager has sent to all: the same wish arrives twice within milliseconds. */
const SAME_WISH_MS = 1000

/** Closes them one after the other. `npmParent` is the process between npm and us, if npm started us. */
export function closeWhenAsked(running: readonly Closable[], report: Report, npmParent: number | undefined): void {
  let closing = false
  let firstAt = 0
  const close = (why: { signal: string } | { reason: string }) => {
    // A terminal's Ctrl-C and a service manager reach every process, and the first one tells its workers once more.
    if (closing && cluster.isWorker) return
    if (closing && performance.now() - firstAt < SAME_WISH_MS) return
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
    whenEnded(npmParent, () => closing || close({ reason: 'npm has ended' }))
}

async function closeAll(running: readonly Closable[], report: Report): Promise<void> {
  try {
    for (const part of running) await part.close()
    report('stopped')
    process.exit(0)
  } catch (error) {
    report('close_failed', { err: error })
    process.exit(1)
  }
}

/** npm asks only the shell in between to end, and many shells end without telling us. */
function whenEnded(parent: number, act: () => void): void {
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    act()
  }, PARENT_CHECK_MS).unref()
}
