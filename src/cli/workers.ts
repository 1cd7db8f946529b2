// Several processes on one machine that share the port and the store: the primary only starts, replaces and ends them.
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import type { Environment } from '../config/settings.ts'
import type { Report } from '../events.ts'
import type { EventCounter } from '../observe/metrics.ts'
import type { WorkerChannel } from './worker-messages.ts'
import { sumUpWorkers } from './worker-metrics.ts'

/**
 * A worker that dies at every start must not keep the machine busy. And Ctrl-C and service managers signal every process: a worker
 * that is just starting dies of it, maybe before the signal has reached us.
 */
const REPLACE_AFTER_MS = 500

interface Workers {
  /** Tells all of them. */
  reopenFiles(): void
  /** Resolves when all have exited; a second call kills them. */
  close(): Promise<void>
}

interface WorkerOptions {
  readonly channel: WorkerChannel
  /** What each has besides our own environment. */
  readonly env: Environment
  readonly isSocketInherited: boolean
  /** The primary's own events. */
  readonly countedEvents: EventCounter
}

/** Resolves when the first one listens; `undefined` if it exited before that, and has said why. */
export async function startWorkers(
  count: number,
  { channel, env, isSocketInherited, countedEvents }: WorkerOptions,
  report: Report,
): Promise<Workers | undefined> {
  // Each worker accepts connections itself. One that the primary hands to a worker that is dying or closing would hang.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  let closing = false
  const exited = Promise.withResolvers<void>()
  const workers = () => Object.values(cluster.workers ?? {}) as Worker[]
  // Sending to a worker that is exiting fails; its exit is what counts.
  cluster.on('fork', worker => worker.on('error', () => {}))

  sumUpWorkers(channel, countedEvents)
  const listening = new Set<number>()
  cluster.on('listening', ({ id }) => listening.add(id))

  const first = cluster.fork(env)
  const listens = await new Promise<boolean>(resolve => {
    first.once('listening', () => resolve(true))
    first.once('exit', () => resolve(false))
  })
  if (!listens) return undefined

  cluster.on('exit', async (worker, code, signal) => {
    if (!closing) await pause(REPLACE_AFTER_MS)
    if (closing) {
      if (workers().length === 0) exited.resolve()
      return
    }
    report('worker_died', { worker: worker.id, exitCode: code, signal })
    // With its last worker the cluster closes the inherited socket; only the service manager still has it.
    if (isSocketInherited && workers().length === 0) {
      report('inherited_socket_lost')
      process.exit(1)
    }
    cluster.fork(env)
  })
  for (let started = 1; started < count; started++) cluster.fork(env)

  return {
    reopenFiles() {
      for (const worker of workers()) {
        // The signal would end a worker that is just starting.
        if (listening.has(worker.id)) worker.process.kill('SIGHUP')
        else worker.once('listening', () => worker.process.kill('SIGHUP'))
      }
    },
    close() {
      if (workers().length === 0) exited.resolve()
      for (const worker of workers()) worker.process.kill(closing ? 'SIGKILL' : 'SIGTERM')
      closing = true
      return exited.promise
    },
  }
}
