// The processor time of a process, from /proc: steadier than a rate where a machine is shared.

import { readdirSync, readFileSync } from 'node:fs'

/** In microseconds, of all of its threads; NaN if the system does not report it. */
export function cpuTimeOf(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, thread) => sum + timeOfThread(pid, thread), 0)
  } catch {
    return Number.NaN
  }
}

function timeOfThread(pid: number, thread: string): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1000
}
