// When a call has to be done. A timer, and no AbortSignal: one of those for every call, with a listener, takes longer than to
// send the request, and stays in memory until its time has come.
import type { MenshenError } from '../../errors.ts'
import { phrase, phrasedError } from '../../phrases.ts'

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
    deadline.passed = phrasedError('provider_unreachable', phrase('no_whole_answer', { ms }))
    deadline.onPassed(deadline.passed)
  }, ms)
  const deadline: Deadline = { passed: undefined, onPassed() {}, clear: () => clearTimeout(timer) }
  return deadline
}
