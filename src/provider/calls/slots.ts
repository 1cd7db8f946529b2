// Slots for calls to the provider: so many at once, so many waiting, and whoever comes then is told at once.
import { MenshenError } from '../../errors.ts'

export interface Slots {
  /** Whether the next one has to wait. */
  isFull(): boolean
  withSlot<T>(work: () => Promise<T>): Promise<T>
}

export function createSlots(parallel: number, waiting: number): Slots {
  let running = 0
  const queue: (() => void)[] = []
  return {
    isFull: () => running >= parallel,
    async withSlot(work) {
      if (running < parallel) running++
      else if (queue.length < waiting) await new Promise<void>(resolve => queue.push(resolve))
      else throw new MenshenError('provider_busy', `${parallel} calls are under way and ${waiting} are waiting`)
      try {
        return await work()
      } finally {
        // Whoever waits longest takes the place over.
        const next = queue.shift()
        if (next) next()
        else running--
      }
    },
  }
}
