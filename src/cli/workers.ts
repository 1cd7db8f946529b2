// Processes that share the port and the store, and the process that starts, replaces and ends them. This file imports nothing of the
// gateway, because with WORKERS=1 it is all that the supervisor loads.

import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import type { Environment } from '../config/settings.ts'
import type { EventCode } from '../events.ts'

/** Message of a worker: it serves. */
export const SERVING = 'menshen: serving'
/** Message of a worker: it had an uncaught exception. It serves until another worker does, and then gets SIGTERM. */
export const FAILING = 'menshen: failing'
/** Message of a worker: it is about to close its socket. */
const STOPPING = 'menshen: stopping'
/** The answer of the parent process: it has closed its copy of the socket. */
const RELEASED = 'menshen: released'
/** The parent process may be stuck. */
const RELEASE_DEADLINE_MS = 5000

/**
 * A worker that dies at every start must not keep the machine busy. Also, Ctrl-C and service managers signal every process: a worker
 * that is just starting dies of the signal, possibly before it has reached us.
 */
const RESTART_DELAY_MS = 500
/** Workers that die repeatedly are replaced at growing intervals, up to this one. */
const MAX_RESTART_DELAY_MS = 15_000
const RESTART_WINDOW_MS = 60_000

interface Workers {
  /** Forwards the signal to all workers. */
  reopenFiles(): void
  /** Resolves when all have exited, and rejects if one of them failed. A second call kills them. */
  close(): Promise<void>
}

interface WorkerOptions {
  /** Variables of the workers in addition to our own environment. */
  readonly env: Environment
  readonly isSocketInherited: boolean
}

type WriteEvent = (code: EventCode, fields?: object) => void | Promise<void>

/** Resolves when the first worker serves; `undefined` if it exited before that, after logging the reason. */
export async function startWorkers(
  count: number,
  { env, isSocketInherited }: WorkerOptions,
  write: WriteEvent,
): Promise<Workers | undefined> {
  // Each worker accepts connections itself. A connection that the primary passes to a dying or closing worker would hang.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  let closing = false
  let hasFailed = false
  const exited = Promise.withResolvers<void>()
  /** All workers; the cluster itself forgets those that are stopping. */
  const alive = new Set<Worker>()
  const workers = () => [...alive].filter(hasProcess)
  const serving = new Set<number>()
  const failing = new Set<Worker>()
  /** Workers whose replacements are being started. */
  const replaced = new Set<Worker>()
  /** Workers that get SIGHUP as soon as they serve: it would end one that is just starting. */
  const dueForSighup = new Set<Worker>()
  const restartDelayMs = createRestartBackoff(count, () => performance.now())
  cluster.on('message', (worker, message: unknown) => {
    if (message === SERVING) {
      serving.add(worker.id)
      if (dueForSighup.delete(worker)) worker.process.kill('SIGHUP')
      for (const old of failing) old.process.kill('SIGTERM')
      failing.clear()
    } else if (message === FAILING && !replaced.has(worker)) {
      failing.add(worker)
      replaced.add(worker)
      void replace()
    } else if (message === STOPPING) {
      worker.disconnect()
      worker.send(RELEASED, () => {})
    }
  })

  async function replace(): Promise<void> {
    await pause(restartDelayMs())
    if (!closing) start()
  }

  /** If a process cannot be started (no process or memory is left, or Node is just being updated), tries again after a pause. */
  function start(): void {
    try {
      fork(error => void startLater(error))
    } catch (error) {
      void startLater(error)
    }
  }

  async function startLater(error: unknown): Promise<void> {
    await tryToWrite('worker_not_started', { code: Object(error).code })
    await replace()
  }

  /** Throws, or calls `onUnstarted`, if the system cannot start a process. */
  function fork(onUnstarted: (error: Error) => void): Worker {
    const worker = cluster.fork(env)
    alive.add(worker)
    // Synchronously: the error of a process that cannot be started comes before the event `fork`.
    worker.on('error', error => {
      // Sending to a worker that is exiting fails, too, but only its exit matters.
      if (hasProcess(worker)) return
      alive.delete(worker)
      onUnstarted(error)
    })
    worker.once('exit', () => alive.delete(worker))
    return worker
  }

  const isServing = await new Promise<boolean>((resolve, reject) => {
    const first = fork(reject)
    first.on('message', message => {
      if (message === SERVING) resolve(true)
    })
    first.once('exit', () => resolve(false))
  })
  if (!isServing) return undefined

  cluster.on('exit', async (worker, code, signal) => {
    const hasServed = serving.delete(worker.id)
    failing.delete(worker)
    dueForSighup.delete(worker)
    const isReplaced = replaced.delete(worker)
    if (!closing) await pause(isReplaced ? RESTART_DELAY_MS : restartDelayMs())
    if (closing) {
      hasFailed ||= hasServed && code !== 0
      if (workers().length === 0) exited.resolve()
      return
    }
    const isLost = isSocketInherited && workers().length === 0
    if (!isReplaced && !isLost) start()
    await tryToWrite('worker_died', { worker: worker.id, exitCode: code, signal })
    if (!isLost) return
    // With its last worker the cluster closes the inherited socket; after that only the service manager has it.
    await tryToWrite('inherited_socket_lost')
    process.exit(1)
  })
  for (let started = 1; started < count; started++) start()

  /** An event that cannot be written must not end the process. */
  async function tryToWrite(code: EventCode, fields?: object): Promise<void> {
    try {
      await write(code, fields)
    } catch {
      // The next event may be written.
    }
  }

  return {
    reopenFiles() {
      for (const worker of workers()) {
        if (serving.has(worker.id)) worker.process.kill('SIGHUP')
        else dueForSighup.add(worker)
      }
    },
    async close() {
      if (workers().length === 0) exited.resolve()
      for (const worker of workers()) worker.process.kill(closing ? 'SIGKILL' : 'SIGTERM')
      closing = true
      await exited.promise
      if (hasFailed) throw new Error('A worker could not close everything.')
    },
  }
}

/**
 * For a worker: resolves when the parent process has closed its copies of our sockets and Node has closed our servers. In the other
 * order, the system would keep accepting connections for a copy, and reset them all when the copy is closed.
 */
export async function releaseSocket(): Promise<void> {
  if (!cluster.worker?.isConnected()) return
  const { promise: released, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(resolve, RELEASE_DEADLINE_MS)
  process.on('message', message => {
    if (message === RELEASED) resolve()
  })
  // If our server had no connection, Node has already disconnected us.
  process.once('disconnect', resolve)
  process.send?.(STOPPING, undefined, undefined, error => {
    if (error) resolve()
  })
  await released
  clearTimeout(deadline)
}

function hasProcess(worker: Worker): boolean {
  return worker.process.pid !== undefined
}

/** How long each replacement waits. The pause doubles while workers die soon after each other. */
export function createRestartBackoff(count: number, now: () => number): () => number {
  let recent: number[] = []
  return () => {
    const at = now()
    recent = [...recent.filter(time => at - time < RESTART_WINDOW_MS), at]
    const repeats = Math.max(0, recent.length - count - 1)
    return Math.min(RESTART_DELAY_MS * 2 ** repeats, MAX_RESTART_DELAY_MS)
  }
}
