// What the probes of the doctor found, and how they are run: all at once, each with a deadline, none able to spoil another.
import { MenshenError } from '../../errors.ts'

export interface Finding {
  /** What was looked at. */
  readonly name: string
  readonly level: 'good' | 'warning' | 'failure'
  readonly seen: string
  /** What to do about it; empty if nothing. */
  readonly remedy: string
}

export interface Probe {
  readonly name: string
  run(): Promise<readonly Finding[]>
}

export function good(name: string, seen: string): Finding {
  return { name, level: 'good', seen, remedy: '' }
}

export function warning(name: string, seen: string, remedy: string): Finding {
  return { name, level: 'warning', seen, remedy }
}

export function failure(name: string, seen: string, remedy: string): Finding {
  return { name, level: 'failure', seen, remedy }
}

/** They wait for different things, so that all run at once. */
export async function runProbes(probes: readonly Probe[], deadlineMs: number): Promise<Finding[]> {
  return (await Promise.all(probes.map(probe => runProbe(probe, deadlineMs)))).flat()
}

async function runProbe({ name, run }: Probe, deadlineMs: number): Promise<readonly Finding[]> {
  const late = Promise.withResolvers<readonly Finding[]>()
  const give = () =>
    late.resolve([failure(name, `no answer within ${deadlineMs} ms`, 'Look at what it waits for, and try again.')])
  const timer = setTimeout(give, deadlineMs)
  try {
    return await Promise.race([run(), late.promise])
  } catch (error) {
    return [failure(name, whatFailed(error), 'See what stands here, and try again.')]
  } finally {
    clearTimeout(timer)
  }
}

/** Our own sentences say nothing secret; those of others may quote an address with its password. */
export function whatFailed(error: unknown): string {
  if (error instanceof MenshenError) return error.message
  return `it failed unexpectedly (${codeOf(error)})`
}

export function codeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown }
  if (name === 'AbortError' || name === 'TimeoutError') return 'no answer in time'
  return String(typeof code === 'string' ? code : (name ?? 'unknown')).slice(0, 60)
}
