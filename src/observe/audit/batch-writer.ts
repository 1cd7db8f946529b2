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
  /** When there is no room, the kind that has most makes some. */
  readonly kindOf: (item: Item) => string
}

const MOST_WAITING = 10_000
/** Sealed within a few milliseconds, so that requests do not wait for it. */
const MOST_IN_A_BATCH = 256
/** The embedded store proves every session anew after a write: somebody who is refused all the time must not cause many. */
const GATHER_MS = 50
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
const TELL_AGAIN_MS = 60_000

export function createBatchWriter<Item>(options: BatchWriterOptions<Item>): BatchWriter<Item> {
  const { write, to, report, kindOf } = options
  const waiting: Item[] = []
  /** How many of each kind wait. */
  const counts = new Map<string, number>()
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
        for (const item of waiting.splice(0, await write(waiting.slice(0, MOST_IN_A_BATCH)))) count(item, -1)
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

  function count(item: Item, by: 1 | -1): void {
    const kind = kindOf(item)
    counts.set(kind, (counts.get(kind) ?? 0) + by)
  }

  /** Of whichever kind has most, the last one that no write is under way for. False if that is the newcomer's own. */
  function makeRoomFor(newcomer: Item): boolean {
    let [largest, most] = ['', (counts.get(kindOf(newcomer)) ?? 0) + 1]
    for (const [kind, count] of counts) if (count > most) [largest, most] = [kind, count]
    const at = largest === '' ? -1 : waiting.findLastIndex(item => kindOf(item) === largest)
    if (at < MOST_IN_A_BATCH) return false
    for (const item of waiting.splice(at, 1)) count(item, -1)
    return true
  }

  return {
    add(item) {
      const isFull = waiting.length >= MOST_WAITING
      if (isFull) trouble.drop(waiting.length)
      if (!isFull || makeRoomFor(item)) {
        waiting.push(item)
        count(item, 1)
      }
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
