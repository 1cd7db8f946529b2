// Removes expired records from the embedded store, in small steps with pauses, so that other changes hardly wait for it.

import { type Change, type ChangeResult, SWEEP_STEP } from './changes.ts'

interface Sweeper {
  /** Resolves when the current step is done. */
  stop(): Promise<void>
}

interface SweeperOptions {
  readonly now: () => number
  readonly intervalMs: number
  /** Checks without writing. */
  readonly hasExpired: () => boolean
  readonly change: (change: Change) => Promise<ChangeResult>
}

/** During the pauses, other changes have the disk to themselves. */
const SWEEP_PAUSE_MS = 5

export function startSweeper({ now, intervalMs, hasExpired, change }: SweeperOptions): Sweeper {
  let isStopped = false
  let underway: Promise<void> | undefined
  let timer = setTimeout(run, intervalMs).unref()

  function run(): void {
    underway = step()
      .catch(() => false) // the next one tries again
      .then(more => {
        if (!isStopped) timer = setTimeout(run, more ? SWEEP_PAUSE_MS : intervalMs).unref()
      })
  }

  /** True if there may be more. */
  async function step(): Promise<boolean> {
    if (!hasExpired()) return false
    return (await change({ verb: 'sweep', now: now() })) === SWEEP_STEP
  }

  return {
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await underway
    },
  }
}
