// What stands behind the name of a command: read strictly by its row, and refused in one sentence.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { CommandRow } from './command-table.ts'
import { likelyMeant, UsageError } from './usage-error.ts'

type Row<Options> = Pick<CommandRow, 'usage' | 'verbs'> & { readonly options: Options }

export function readCommandArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  row: Row<Options>,
) {
  const { options } = row
  refuseUnknown(args, row)
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // Node explains at length; its first sentence says what is wrong.
    const [problem = ''] = (error as Error).message.split(/[.;\n]/)
    throw refusal(problem, row)
  }
}

/** Node would name the first of them, but not what was meant. */
function refuseUnknown(args: readonly string[], row: Row<ParseArgsOptionsConfig>): void {
  const { options } = row
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  for (const token of tokens)
    if (token.kind === 'option' && !Object.hasOwn(options, token.name))
      throw refusal(
        `Unknown option '${token.rawName}'`,
        row,
        likelyMeant(
          token.rawName,
          Object.keys(options).map(name => `--${name}`),
        ),
      )
}

/** The words that are not options: none but those that the row's usage has. */
export function refuseArgument(argument: string, row: Pick<CommandRow, 'usage' | 'verbs'>): UsageError {
  return refusal(`Unexpected argument "${argument}"`, row, likelyMeant(argument, row.verbs ?? []))
}

export function refusal(problem: string, { usage }: Pick<CommandRow, 'usage'>, likely?: string): UsageError {
  const expected = usage.join(' or ')
  return new UsageError(
    likely === undefined
      ? `${problem}; expected ${expected}.`
      : `${problem}; did you mean ${likely}? Expected ${expected}.`,
  )
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
  throw new UsageError(
    `--since is "${text}"; expected a time, for example 2026-03-01T08:00:00Z, 2026-03-01, 30m, 2h or 7d.`,
  )
}
