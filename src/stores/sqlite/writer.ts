// The main thread's side of the thread that writes to a database file. All stores of this process that use one file share a thread.
//
// Changes that arrive while the thread is busy wait, and become the next batch: one transaction and one flush to the disk for all.

import { Worker } from 'node:worker_threads'
import { withDeadline } from '../../util/deadline.ts'
import type { Change, ChangeResult } from './changes.ts'
import { faultOf, SqliteFault } from './faults.ts'
import { type BatchReply, type ChangeBatch, CLOSE_MESSAGE, monotonicMs } from './messages.ts'

export interface SqliteWriter {
  /** Resolves when the change is on the disk. Rejects with a `SqliteFault`. */
  change(change: Change): Promise<ChangeResult>
  /** Grows when the file is opened, which may be a different file than before. */
  opened(): number
  /** The last user closes the file. Resolves when all changes are on the disk. */
  release(): Promise<void>
}

interface PendingChange {
  readonly change: Change
  /** When to give up on the lock of another process. */
  readonly until: number
  readonly settled: PromiseWithResolvers<ChangeResult>
}

interface SharedWriter {
  readonly writer: Omit<SqliteWriter, 'release'>
  users: number
  close(): Promise<void>
}

/** A transaction stays small: nothing is confirmed before all of it is written. */
const MAX_BATCH_SIZE = 256
/** The thread gives up on a lock at the deadline. Its answer, which contains the reason, takes a while on a busy machine. */
const ANSWER_MARGIN_MS = 2000

// Keyed by path: two threads would wait for each other's locks.
const shared = new Map<string, SharedWriter>()

/** Resolves when the file, an absolute path, is open. */
export async function acquireWriter(path: string, deadlineMs: number): Promise<SqliteWriter> {
  const found = shared.get(path) ?? startWriter(path, deadlineMs)
  shared.set(path, found)
  found.users++

  let isReleased = false
  async function release(): Promise<void> {
    if (isReleased) return
    isReleased = true
    if (--found.users > 0) return
    if (shared.get(path) === found) shared.delete(path)
    await found.close()
  }

  try {
    await found.writer.change({ verb: 'open' })
    return { ...found.writer, release }
  } catch (error) {
    await release().catch(() => {})
    throw error
  }
}

function startWriter(file: string, deadlineMs: number): SharedWriter {
  const answerMs = deadlineMs + ANSWER_MARGIN_MS
  let worker: Worker | undefined
  let waiting: PendingChange[] = []
  let sent: readonly PendingChange[] = []
  let isScheduled = false
  let opened = 0
  /** How often threads that have ended have opened the file: the next thread counts from 1 again. */
  let openedBefore = 0
  /** Resolves when nothing is in flight. */
  let idle: PromiseWithResolvers<void> | undefined

  function start(): Worker {
    const started = new Worker(new URL('./thread.ts', import.meta.url), {
      workerData: { file },
      execArgv: [],
      name: 'menshen-store',
    })
    let reason = 'The thread has ended.'
    started.on('message', receive)
    started.on('error', error => {
      reason = faultOf(error).reason
    })
    started.on('exit', () => {
      if (worker !== started) return
      worker = undefined
      openedBefore = opened
      settle(sent.map(() => ({ fault: { kind: 'other', reason } })))
    })
    return started
  }

  function schedule(): void {
    if (isScheduled || sent.length > 0 || waiting.length === 0) return
    isScheduled = true
    // After the callback, so that all its changes are written together.
    process.nextTick(send)
  }

  function send(): void {
    isScheduled = false
    if (sent.length > 0 || waiting.length === 0) return
    sent = waiting.slice(0, MAX_BATCH_SIZE)
    waiting = waiting.slice(MAX_BATCH_SIZE)
    const now = performance.now()
    const until = Math.min(...sent.map(each => each.until))
    worker ??= start()
    // Keeps a process that has nothing else to do alive until its changes are written, and no longer.
    worker.ref()
    try {
      const lockUntil = monotonicMs() + Math.floor(until - now)
      worker.postMessage({ changes: sent.map(({ change }) => change), lockUntil } satisfies ChangeBatch)
    } catch (error) {
      const fault = faultOf(error)
      settle(sent.map(() => ({ fault })))
    }
  }

  function receive(answer: BatchReply | object): void {
    // `node --watch` makes a thread post the names of its imports.
    if (!('outcomes' in answer)) return
    opened = openedBefore + answer.opened
    settle(answer.outcomes)
  }

  function settle(outcomes: BatchReply['outcomes']): void {
    const answered = sent
    sent = []
    for (const [n, { settled }] of answered.entries()) {
      const outcome = outcomes[n]
      if (outcome && 'result' in outcome) settled.resolve(outcome.result)
      else settled.reject(new SqliteFault(outcome?.fault.kind ?? 'other', outcome?.fault.reason ?? 'no outcome'))
    }
    schedule()
    if (sent.length > 0 || waiting.length > 0) return
    worker?.unref()
    idle?.resolve()
    idle = undefined
  }

  function change(change: Change): Promise<ChangeResult> {
    const settled = Promise.withResolvers<ChangeResult>()
    const entry = { change, until: performance.now() + deadlineMs, settled }
    waiting.push(entry)
    schedule()
    return withDeadline(settled.promise, answerMs, () => {
      waiting = waiting.filter(other => other !== entry)
      throw new SqliteFault('no_answer', `no answer within ${answerMs} ms`)
    })
  }

  async function close(): Promise<void> {
    if (sent.length > 0 || waiting.length > 0) {
      idle ??= Promise.withResolvers<void>()
      await withDeadline(idle.promise, answerMs)
    }
    const ending = worker
    worker = undefined
    if (!ending) return
    ending.ref()
    const { promise, resolve } = Promise.withResolvers<void>()
    ending.once('exit', () => resolve())
    ending.postMessage(CLOSE_MESSAGE)
    await withDeadline(promise, answerMs).finally(() => ending.unref())
  }

  return { writer: { change, opened: () => opened }, users: 0, close }
}
