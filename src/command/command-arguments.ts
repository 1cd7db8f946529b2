// What stands behind the name of a command: read strictly, and refused in one sentence.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { MenshenError } from '../errors.ts'
import { safeText } from '../observe/audit/safe-text.ts'

export function readCommandArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  usage: string,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // Node explains at length; its first sentence says what is wrong.
    const [problem = ''] = (error as Error).message.split(/[.;\n]/)
    throw refusal(problem, usage)
  }
}

export function refusal(problem: string, expected: string): MenshenError {
  return new MenshenError('bad_settings', safeText(`${problem}; expected ${expected}.`))
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time, a day, or how long ago. As in the log, a time without a zone is UTC. */
export function readSince(text: string, now: number): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNITS[unit as keyof typeof UNITS]
  const [, day, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? []
  const at = Date.parse(`${day}T${time}${zone}`)
  // The 31st of a short month would be taken for a day of the next.
  const isDay = !Number.isNaN(at) && new Date(`${day}T00:00Z`).toISOString().startsWith(`${day}T`)
  if (isDay) return at
  throw refusal(`--since is "${text}"`, 'a time, for example 2026-03-01T08:00:00Z, 2026-03-01, 30m, 2h or 7d')
}
