// When a call has to be done. A timer, and no AbortSignal: one of those for every call, with a listener, takes longer than to
// send the request, and stays in memory until its time has come.
import { MenshenError } from '../../errors.ts'

export interface Deadline {
  /** Why there is no more time, once there is none. */
  passed: MenshenError | undefined
  /** Called at that moment. */
  onPassed: (error: MenshenError) => void
  /** The call is done. */
  clear(): void
}

export function startDeadline(ms: number): Deadline {
  const timer = setTimeout(() => {
    deadline.passed = new MenshenError('provider_unreachable', `no whole answer within ${ms} ms`)
    deadline.onPassed(deadline.passed)
  }, ms)
  const deadline: Deadline = { passed: undefined, onPassed() {}, clear: () => clearTimeout(timer) }
  return deadline
}
