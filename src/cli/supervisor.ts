// The process above the only worker. It starts the worker, passes signals on, and starts another one when the worker dies or has
// an uncaught exception. It holds the socket in between, so that no connection is refused while the next worker takes over.
//
//   supervisor                 worker 1                         worker 2
//   fork ────────────────────▶ starts, SERVING
//                              uncaught exception, FAILING
//   fork ──────────────────────────────────────────────────────▶ starts, SERVING
//   SIGTERM ─────────────────▶ STOPPING
//   closes its copy ─────────▶ closes its socket
//                              finishes its requests, exit 1
//
// With WORKERS=2 and more the primary of start.ts does the same, and coordinates reloads and metrics besides.

import cluster from 'node:cluster'
import { ENV_FILE, withEnvFile } from '../config/env-file.ts'
import type { Environment } from '../config/settings.ts'
import type { EventCode } from '../events.ts'
import { takeInheritedSocket } from './inherited-socket.ts'
import { closeOnSignal, listenForSighup, npmParentOf } from './signals.ts'
import { startWorkers } from './workers.ts'

/** Marks the only worker: it reloads, announces and counts without a primary. */
const ONLY_WORKER = 'MENSHEN_ONLY_WORKER'

/** False for several workers, and for everything that main.ts refuses with an error message. */
export function canSupervise(environment: Environment): boolean {
  try {
    takeInheritedSocket({ ...environment })
    return !(Number(withEnvFile(environment, ENV_FILE).WORKERS) > 1)
  } catch {
    return false
  }
}

/** Removes the variable, so that no process that we start takes it for its own. */
export function takeOnlyWorker(environment: Record<string, string | undefined>): boolean {
  const isOnly = environment[ONLY_WORKER] !== undefined
  delete environment[ONLY_WORKER]
  return isOnly
}

export async function supervise(environment: Record<string, string | undefined>, now: () => number): Promise<void> {
  const npmParent = npmParentOf(environment)
  const sighup = listenForSighup()
  const inherited = takeInheritedSocket(environment)
  const env = { ...inherited?.forWorkers, [ONLY_WORKER]: '1' }
  const signals = forwardSignals()
  const workers = await startWorkers(1, { env, isSocketInherited: inherited !== undefined }, (code, fields) =>
    write(logEnvironment(environment), now, code, fields),
  )
  if (!workers) {
    const signal = signals.stop()
    if (signal) process.kill(process.pid, signal)
    // The worker has logged the reason.
    process.exit(1)
  }
  // The worker reports its own end.
  const close = closeOnSignal([workers], () => {}, npmParent)
  // Only now: without a listener, Node would drop a signal that has just arrived.
  const signal = signals.stop()
  if (signal) close({ reason: signal })
  sighup.forwardTo(workers)
}

/** The worker logs that it serves shortly before we know. A signal in between must not end us, and the worker with us. */
function forwardSignals() {
  let received: NodeJS.Signals | undefined
  const passOn = (signal: NodeJS.Signals) => {
    received = signal
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill(signal)
  }
  process.on('SIGTERM', passOn).on('SIGINT', passOn)
  return {
    /** Stops passing signals on, and returns the signal that has arrived. */
    stop() {
      process.off('SIGTERM', passOn).off('SIGINT', passOn)
      return received
    },
  }
}

/** Reports a worker that died even if .env has become unreadable since the start. */
function logEnvironment(environment: Environment): Environment {
  try {
    return withEnvFile(environment, ENV_FILE)
  } catch {
    return environment
  }
}

/** The log is loaded only with the first event, which is about a worker that died. */
async function write(environment: Environment, now: () => number, code: EventCode, fields?: object): Promise<void> {
  const [{ openLog }, { createEventLog }] = await Promise.all([import('./terminal.ts'), import('../log.ts')])
  // The worker has validated both.
  const { LOG_LEVEL = 'info', LOG_FORMAT = 'auto' } = environment
  const settings = { LOG_LEVEL, LOG_FORMAT } as Parameters<typeof openLog>[0]
  const events = createEventLog(openLog(settings, environment), now)
  events.write(code, fields)
  events.close()
}
