// A clock that two processes can compare, finer than a millisecond.

import { performance } from 'node:perf_hooks'

export function preciseNow(): number {
  return performance.timeOrigin + performance.now()
}
