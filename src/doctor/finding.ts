// Findings of the doctor's probes, and how the probes run: in parallel, each with a deadline, and none can break another.
import { MenshenError } from '../errors.ts'
import { type Phrase, phrase, phraseOf, quoted } from '../text/text.ts'
import { withDeadline } from '../util/deadline.ts'

/** The User-Agent of the doctor's requests. */
export const DOCTOR_AGENT = 'menshen doctor'

export interface Finding {
  /** What was checked; the same in every language. */
  readonly name: string
  readonly level: 'good' | 'warning' | 'failure'
  readonly seen: Phrase
  /** What to do about it; absent if nothing. */
  readonly remedy?: Phrase
}

export interface Probe {
  readonly name: string
  run(): Promise<readonly Finding[]>
}

export function good(name: string, seen: Phrase): Finding {
  return { name, level: 'good', seen }
}

export function warning(name: string, seen: Phrase, remedy: Phrase): Finding {
  return { name, level: 'warning', seen, remedy }
}

export function failure(name: string, seen: Phrase, remedy: Phrase): Finding {
  return { name, level: 'failure', seen, remedy }
}

/** Probes wait for different things, so they all run in parallel. */
export async function runProbes(probes: readonly Probe[], deadlineMs: number): Promise<Finding[]> {
  return (await Promise.all(probes.map(probe => runProbe(probe, deadlineMs)))).flat()
}

async function runProbe({ name, run }: Probe, deadlineMs: number): Promise<readonly Finding[]> {
  const late = () => [failure(name, phrase('no_answer_within', { ms: deadlineMs }), phrase('look_and_try_again'))]
  try {
    return await withDeadline(run(), deadlineMs, late)
  } catch (error) {
    return [failure(name, whatFailed(error), phrase('see_and_try_again'))]
  }
}

/** Our own messages contain no secrets; those of others may quote an address with its password. */
export function whatFailed(error: unknown): Phrase {
  if (error instanceof MenshenError) return phraseOf(error) ?? quoted(error.message)
  return phrase('failed_unexpectedly', { code: reasonOf(error) })
}

/** The code of an error, for display. */
export function reasonOf(error: unknown): Phrase {
  const { name } = Object(error) as { name?: unknown }
  return name === 'AbortError' || name === 'TimeoutError' ? phrase('in_no_time') : quoted(codeOf(error))
}

export function codeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown }
  return String(typeof code === 'string' ? code : (name ?? 'unknown')).slice(0, 60)
}
