// Writes what must not hold anybody up: one write is in flight, and everything that comes meanwhile goes into the next.
// What cannot be written is kept, within a bound, and tried again.
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'

export interface BatchWriter<Item> {
  add(item: Item): void
  /** Calls `write` soon, also if there is nothing to write. */
  wake(): void
  /** Writes what is left, for so long at most. */
  close(patienceMs: number): Promise<void>
}

interface BatchWriterOptions<Item> {
  /** Says how many of them, from the first on, were written. */
  readonly write: (items: readonly Item[]) => Promise<number>
  /** Where to, for the log. */
  readonly to: 'store' | 'file'
  readonly report: Report
}

const MOST_WAITING = 10_000
/** Sealed within a few milliseconds, so that requests do not wait for it. */
const MOST_IN_A_BATCH = 256
/** The embedded store proves every session anew after a write: somebody who is refused all the time must not cause many. */
const GATHER_MS = 50
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
const TELL_AGAIN_MS = 60_000

export function createBatchWriter<Item>({ write, to, report }: BatchWriterOptions<Item>): BatchWriter<Item> {
  const waiting: Item[] = []
  const closing = new AbortController()
  let isRunning = false
  let isAskedFor = false
  let isOver = false
  const trouble = createTrouble(to, report)
  let idle = Promise.resolve()

  function start(): void {
    if (isRunning || isOver) return
    isRunning = true
    idle = run()
  }

  async function run(): Promise<void> {
    let failures = 0
    while ((waiting.length > 0 || isAskedFor) && !isOver) {
      await gather()
      isAskedFor = false
      try {
        waiting.splice(0, await write(waiting.slice(0, MOST_IN_A_BATCH)))
        failures = 0
      } catch (error) {
        isAskedFor = true
        trouble.tell(waiting.length, factsOf(error))
        await rest(failures++)
      }
    }
    if (!isOver) trouble.end()
    isRunning = false
  }

  async function gather(): Promise<void> {
    if (waiting.length >= MOST_IN_A_BATCH) await nextTurn()
    else await pauseUntilClosing(GATHER_MS, true)
  }

  async function rest(failures: number): Promise<void> {
    if (closing.signal.aborted) await pause(FIRST_PAUSE_MS)
    else await pauseUntilClosing(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), false)
  }

  /** `ref`: the process does not end by itself meanwhile. */
  async function pauseUntilClosing(ms: number, ref: boolean): Promise<void> {
    await pause(ms, undefined, { ref, signal: closing.signal }).catch(() => {})
  }

  return {
    add(item) {
      if (waiting.length < MOST_WAITING) waiting.push(item)
      else trouble.drop(waiting.length)
      start()
    },

    wake() {
      isAskedFor = true
      start()
    },

    async close(patienceMs) {
      closing.abort()
      const idleOrLate = new AbortController()
      const late = pause(patienceMs, undefined, { signal: idleOrLate.signal }).catch(() => {})
      await Promise.race([idle, late])
      idleOrLate.abort()
      isOver = true
      if (waiting.length > 0) trouble.giveUp(waiting.length)
    },
  }
}

/** Says once in a while that it does not work, and then that it works again. */
function createTrouble(to: 'store' | 'file', report: Report) {
  let dropped = 0
  let toldAt: number | undefined

  function tell(count: number, why: object): void {
    const at = performance.now()
    if (toldAt !== undefined && at - toldAt < TELL_AGAIN_MS) return
    toldAt = at
    report('audit_not_written', { to, count, dropped, ...why })
  }

  return {
    tell,
    drop(count: number): void {
      dropped++
      tell(count, { reason: 'too_many' })
    },
    giveUp(count: number): void {
      report('audit_not_written', { to, count, dropped, reason: 'closing' })
    },
    end(): void {
      if (toldAt !== undefined) report('audit_written_again', { to, dropped })
      toldAt = undefined
      dropped = 0
    },
  }
}
