// Slots for calls to the provider: so many at once, so many waiting, and whoever comes then is told at once. Owners, which are
// networks of clients, are served in turn: one that sends a thousand holds up nobody else.
import { MenshenError } from '../../errors.ts'
import { createWaitingLine } from '../../util/waiting-line.ts'

export interface Slots {
  /** Whether the next one has to wait. */
  isFull(): boolean
  withSlot<T>(work: () => Promise<T>, owner?: string): Promise<T>
}

interface Turn {
  readonly owner: string
  begin(): void
  refuse(error: MenshenError): void
}

/** `share` is how many slots one owner has at most. */
export function createSlots(parallel: number, waiting: number, share = parallel): Slots {
  const running = new Map<string, number>()
  const line = createWaitingLine<Turn>()
  let taken = 0

  function mayBegin(owner: string): boolean {
    return taken < parallel && (running.get(owner) ?? 0) < share
  }

  function take(owner: string): void {
    taken++
    running.set(owner, (running.get(owner) ?? 0) + 1)
  }

  function giveBack(owner: string): void {
    taken--
    const left = (running.get(owner) ?? 0) - 1
    if (left > 0) running.set(owner, left)
    else running.delete(owner)
    const next = line.take(mayBegin)
    if (!next) return
    take(next.owner)
    next.begin()
  }

  /** In the place of whoever has most in the line, if it is full. */
  function wait(owner: string): Promise<void> {
    const busy = () => new MenshenError('provider_busy', `${parallel} calls are under way and ${waiting} are waiting`)
    const last = line.size < waiting ? undefined : line.lastOfLargest(owner)
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
        giveBack(owner)
      }
    },
  }
}
