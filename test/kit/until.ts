import { setTimeout as pause } from 'node:timers/promises'

/** What takes longer than this hangs, on a machine with twenty times as much to do as it has cores, too. */
export const HANG_MS = 120_000

/** Resolves when it is so; throws when it is not so after a long time. For what no event tells of. */
export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = HANG_MS): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not so after ${deadlineMs} ms`)
    await pause(10)
  }
}
