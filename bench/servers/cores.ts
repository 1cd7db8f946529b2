// Which cores the measured servers and everything else run on, so that neither takes the other's time.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findProgram } from '../../test/kit/packages.ts'

export interface Cores {
  /** The command that runs another one on the measured server's core, or nothing. */
  readonly server: readonly string[]
  /** On all of them. */
  readonly all: readonly string[]
  readonly sentence: string
}

/** Moves this process, and with it all that it starts, away from the server's core. */
export function shareCores(): Cores {
  const [first, ...others] = allowedCores()
  if (first === undefined || others.length === 0) return unpinned('there is one core for everything')
  if (!findProgram('taskset')) return unpinned('taskset is not installed: nothing is pinned to a core')
  spawnSync('taskset', ['-a', '-c', '-p', others.join(','), String(process.pid)])
  const on = (...cores: number[]) => ['taskset', '-c', cores.join(',')]
  const sentence = `measured servers on core ${first}, load and all else on ${others.join(', ')}`
  return { server: on(first), all: on(first, ...others), sentence }
}

function unpinned(sentence: string): Cores {
  return { server: [], all: [], sentence }
}

function allowedCores(): number[] {
  const [, list = ''] = /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return list.split(',').flatMap(range => {
    const [from = 0, to = from] = range.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, offset) => from + offset)
  })
}
