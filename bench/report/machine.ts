// The machine that the figures come from.

import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'

export function machine(): string {
  const [cpu] = cpus()
  return [
    `${availableParallelism()} cores of ${cpu?.model.trim()}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `Node ${process.version}`,
    `load average ${loadavg()[0]?.toFixed(1)} at the start`,
  ].join(', ')
}
