// The memory of a process, from /proc.

import { readFileSync } from 'node:fs'

interface ProcessMemory {
  /** All of it, in bytes, including the pages of mapped files that the system would give to others if they needed them. */
  readonly resident: number
  /** The part that belongs only to this process. */
  readonly anonymous: number
}

/** Throws if the process has ended. */
export function memoryOf(pid: number): ProcessMemory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => {
    const kilobytes = new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]
    // A process that has ended but was not waited for still has a status, but no memory.
    if (kilobytes === undefined) throw new Error(`The process ${pid} has ended.`)
    return Number(kilobytes) * 1024
  }
  return { resident: bytes('VmRSS'), anonymous: bytes('RssAnon') }
}
