// SIGHUP: on a terminal it ends the process as usual; everywhere else it asks to open files again, after a log rotation.
import { isatty } from 'node:tty'

export interface Reopening {
  reopenFiles(): void
}

/** Listens from the beginning of a start on, and hands on what came once there is somebody to hand it to. */
export function listenForHangUps(): { hand(to: Reopening): void } {
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
