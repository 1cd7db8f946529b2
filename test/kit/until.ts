import { setTimeout as pause } from 'node:timers/promises'

/** Resolves when it is so; throws when it is not after a generous while. For what no event tells of. */
export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = 30_000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not so after ${deadlineMs} ms`)
    await pause(10)
  }
}
