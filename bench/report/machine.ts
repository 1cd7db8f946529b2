// The machine that the figures come from.

import { spawnSync } from 'node:child_process'
import { arch, availableParallelism, cpus, totalmem } from 'node:os'

/** The same for every run on the same machine. */
export function machine(): string {
  return [
    `${availableParallelism()} cores of ${modelOf()} (${arch()})`,
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `Node ${process.version}`,
  ].join(', ')
}

/** Node does not know the names of all processors. */
function modelOf(): string {
  const { model = 'unknown' } = cpus()[0] ?? {}
  if (model !== 'unknown') return model.trim()
  const { stdout } = spawnSync('lscpu', { encoding: 'utf8' })
  return /^Model name:\s*(.+)$/m.exec(stdout ?? '')?.[1] ?? model
}
