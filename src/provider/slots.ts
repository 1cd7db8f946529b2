// Slots for calls to the provider: a limited number run, a limited number wait, and any more are refused immediately. Owners,
// which are networks of clients, are served in turn, so that an owner with a thousand calls delays only itself.

import { MenshenError } from '../errors.ts'
import { createFairQueue } from '../util/fair-queue.ts'

export interface Slots {
  /** Whether the next call has to wait. */
  isFull(): boolean
  withSlot<T>(work: () => Promise<T>, owner?: string): Promise<T>
}

interface Turn {
  readonly owner: string
  begin(): void
  refuse(error: MenshenError): void
}

/** `share` is the number of slots that one owner may have. */
export function createSlots(parallel: number, waiting: number, share = parallel): Slots {
  const running = new Map<string, number>()
  const line = createFairQueue<Turn>()
  let taken = 0

  function mayBegin(owner: string): boolean {
    return taken < parallel && (running.get(owner) ?? 0) < share
  }

  function take(owner: string): void {
    taken++
    running.set(owner, (running.get(owner) ?? 0) + 1)
  }

  function release(owner: string): void {
    taken--
    const left = (running.get(owner) ?? 0) - 1
    if (left > 0) running.set(owner, left)
    else running.delete(owner)
    const next = line.take(mayBegin)
    if (!next) return
    take(next.owner)
    next.begin()
  }

  /** If the line is full, replaces the last call of the owner with the most waiting calls. */
  function wait(owner: string): Promise<void> {
    const busy = () => new MenshenError('provider_busy', `${parallel} calls are in flight and ${waiting} are waiting`)
    const last = line.size < waiting ? undefined : line.lastOfBusiest(owner)
    if (last) line.remove(last, last.owner)
    last?.refuse(busy())
    if (line.size >= waiting) throw busy()
    return new Promise((begin, refuse) => line.add({ owner, begin, refuse }, owner))
  }

  return {
    isFull: () => taken >= parallel,
    async withSlot(work, owner = '') {
      if (mayBegin(owner)) take(owner)
      else await wait(owner)
      try {
        return await work()
      } finally {
        release(owner)
      }
    },
  }
}
