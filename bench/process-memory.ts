// What a process holds in memory, by /proc.

import { readFileSync } from 'node:fs'

interface ProcessMemory {
  /** All of it, in bytes, with the pages of mapped files that the system would give to others if they needed them. */
  readonly resident: number
  /** What is its own alone. */
  readonly anonymous: number
}

export function memoryOf(pid: number): ProcessMemory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  return { resident: bytes('VmRSS'), anonymous: bytes('RssAnon') }
}
