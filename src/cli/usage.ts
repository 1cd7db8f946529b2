// The command line: commands, options and arguments, and the help that explains them.

import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Environment } from '../config/settings.ts'
import { nearest } from '../config/suggestions.ts'
import type { OperatorLanguage } from '../text/text.ts'
import { safeText } from '../util/safe-text.ts'
import {
  COMMAND_NAMES,
  COMMANDS,
  type CommandName,
  type CommandRow,
  EXIT_CODES,
  GLOBAL_OPTIONS,
  type OptionRow,
  START,
} from './commands/table.ts'

export type CommandLine =
  | { readonly kind: 'start' }
  | { readonly kind: 'version' }
  /** Help for all commands, or for one. */
  | { readonly kind: 'help'; readonly command?: CommandName }
  | { readonly kind: 'command'; readonly command: Exclude<CommandName, 'help'>; readonly args: readonly string[] }

const [HELP, VERSION]: readonly (readonly string[])[] = GLOBAL_OPTIONS.map(({ names }) => names)

export function readCommandLine([first, ...rest]: readonly string[]): CommandLine {
  if (first === undefined) return { kind: 'start' }
  if (HELP?.includes(first)) return { kind: 'help' }
  if (VERSION?.includes(first)) return { kind: 'version' }
  if (first.startsWith('-')) throw new UsageError(unknownOption(first))
  const command = commandNamed(first)
  if (command === 'help') return readHelp(rest)
  if (asksForHelp(rest)) return { kind: 'help', command }
  return { kind: 'command', command, args: rest }
}

/** Everything behind `--` is a value, whatever it looks like. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? args.length : end).some(argument => HELP?.includes(argument))
}

function readHelp(args: readonly string[]): CommandLine {
  const [name, verb, ...more] = args.filter(argument => !HELP?.includes(argument))
  if (name === undefined) return { kind: 'help' }
  const command = commandNamed(name)
  const { verbs = [] }: CommandRow = COMMANDS[command]
  // `menshen help rules check` is as good as `menshen help rules`.
  const odd = verb !== undefined && !verbs.includes(verb) ? verb : more[0]
  if (odd !== undefined)
    throw new UsageError(`Unexpected argument "${odd}"; expected ${COMMANDS.help.usage.join(' or ')}.`)
  return { kind: 'help', command }
}

function commandNamed(name: string): CommandName {
  const command = COMMAND_NAMES.find(known => known === name)
  if (command) return command
  const likely = likelyMeant(name, COMMAND_NAMES)
  const remedy = likely ? `did you mean ${likely}?` : `commands: ${COMMAND_NAMES.join(', ')}.`
  throw new UsageError(`Unknown command "${name}"; ${remedy} Without a command Menshen starts.`)
}

function unknownOption(given: string): string {
  const names = GLOBAL_OPTIONS.flatMap(({ names }): readonly string[] => names)
  const likely = likelyMeant(given, names)
  if (likely) return `Unknown option ${given}; did you mean ${likely}?`
  return `Unknown option ${given}; settings are given by the environment or .env, for example PORT=4000, and the commands are: ${COMMAND_NAMES.join(', ')}.`
}

// The arguments of a command: read strictly by its row, and refused in one sentence.

type Row<Options> = Pick<CommandRow, 'usage' | 'verbs'> & { readonly options: Options }

export function readCommandArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  row: Row<Options>,
) {
  const { options } = row
  refuseWrongOptions(args, row)
  return parseArgs({ args: [...args], options, allowPositionals: true })
}

/** Before Node does: its errors are texts, and do not say what was meant. */
function refuseWrongOptions(args: readonly string[], row: Row<ParseArgsOptionsConfig>): void {
  const { options } = row
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const given = tokens.filter(token => token.kind === 'option')
  const names = Object.keys(options).map(name => `--${name}`)
  for (const { name, rawName } of given)
    if (!Object.hasOwn(options, name)) throw usageError(`Unknown option '${rawName}'`, row, likelyMeant(rawName, names))
  for (const { name, rawName, value, inlineValue } of given) {
    const takesValue = options[name]?.type === 'string'
    if (takesValue && value === undefined) throw usageError(`Option '--${name} <value>' argument missing`, row)
    if (!takesValue && value !== undefined) throw usageError(`Option '--${name}' does not take an argument`, row)
    // `--user --json`: probably a forgotten value.
    if (!inlineValue && value !== undefined && value.length > 1 && value.startsWith('-'))
      throw usageError(`Option '${rawName}' argument is ambiguous`, row)
  }
}

/** The words that are not options: none but those that the row's usage has. */
export function refuseArgument(argument: string, row: Pick<CommandRow, 'usage' | 'verbs'>): UsageError {
  return usageError(`Unexpected argument "${argument}"`, row, likelyMeant(argument, row.verbs ?? []))
}

export function usageError(problem: string, { usage }: Pick<CommandRow, 'usage'>, likely?: string): UsageError {
  const expected = usage.join(' or ')
  return new UsageError(
    likely === undefined
      ? `${problem}; expected ${expected}.`
      : `${problem}; did you mean ${likely}? Expected ${expected}.`,
  )
}

/** The language of the answer: that of `--language`, else that of the terminal's locale. */
export function operatorLanguage(
  asked: string | undefined,
  { LC_ALL, LC_MESSAGES, LANG }: Environment,
  row: Pick<CommandRow, 'usage'>,
): OperatorLanguage {
  // In the order of POSIX.
  if (asked === undefined) return isChinese(LC_ALL || LC_MESSAGES || LANG || '') ? 'zh-CN' : 'en'
  if (isChinese(asked)) return 'zh-CN'
  if (/^en\b/i.test(asked)) return 'en'
  throw usageError(`--language is "${asked}", and there are zh-CN and en`, row)
}

/** `zh`, `zh-CN`, `zh_CN.UTF-8`. */
function isChinese(name: string): boolean {
  return /^zh(?![a-z])/i.test(name)
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time, a day, or how long ago. As in the log, a time without a zone is UTC. */
export function readSince(text: string, now: number, option = '--since'): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNITS[unit as keyof typeof UNITS]
  const [, day, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? []
  const at = Date.parse(`${day}T${time}${zone}`)
  // The 31st of a short month would be taken for a day of the next.
  const isDay = !Number.isNaN(at) && new Date(`${day}T00:00Z`).toISOString().startsWith(`${day}T`)
  if (isDay) return at
  throw new UsageError(
    `${option} is "${text}"; expected a time, for example 2026-03-01T08:00:00Z, 2026-03-01, 30m, 2h or 7d.`,
  )
}

// What `--help` prints, of everything or of one command, from the rows of commands/table.ts.

type Pair = readonly [name: string, description: string]

export function helpText(): string {
  return page([
    ['Menshen adds sign-in to any web application.'],
    [
      'Usage:',
      ...columns([
        ['menshen', START.description],
        ['menshen COMMAND [options]', 'runs a command:'],
      ]),
    ],
    ['Commands:', ...columns(COMMAND_NAMES.map(name => [name, COMMANDS[name].description]))],
    ['Options:', ...columns(GLOBAL_OPTIONS.map(({ names, description }) => [names.join(', '), description]))],
    ['Exit codes:', ...columns(Object.entries(EXIT_CODES))],
    ['Run menshen help COMMAND for details. Settings: docs/settings.md. Commands: docs/commands.md.'],
  ])
}

export function commandHelpText(name: CommandName): string {
  const { description, usage, details, options, examples, fails }: CommandRow = COMMANDS[name]
  const optionRows = Object.entries(options).map(([option, row]): Pair => [optionForm(option, row), row.description])
  return page([
    [`menshen ${name} ${description}.`],
    ['Usage:', ...usage.map(line => `  ${line}`)],
    ...(details === undefined ? [] : [wrapped(details)]),
    ...(optionRows.length === 0 ? [] : [['Options:', ...columns(optionRows)]]),
    ['Examples:', ...columns(examples)],
    ['Exit codes:', ...columns(exitCodesOf(fails))],
  ])
}

/** Those of one command. */
function exitCodesOf(fails: string | undefined): Pair[] {
  return [['0', 'success'], ...(fails === undefined ? [] : [['1', fails] as const]), ['2', EXIT_CODES[2]]]
}

export function optionForm(name: string, { value }: OptionRow): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

function page(parts: readonly (readonly string[])[]): string {
  return `${parts.map(lines => lines.join('\n')).join('\n\n')}\n`
}

function columns(pairs: readonly Pair[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, description]) => `  ${name.padEnd(width)}  ${description}`)
}

const WIDTH = 100

function wrapped(text: string): string[] {
  return text.match(new RegExp(`.{1,${WIDTH}}(?:\\s+|$)`, 'g'))?.map(line => line.trimEnd()) ?? []
}

// A command line that cannot be understood. Its exit code differs from that of every other error.

export class UsageError extends Error {
  constructor(message: string) {
    super(safeText(message))
    this.name = 'UsageError'
  }
}

/** What was probably meant; `undefined` if nothing is near. */
export function likelyMeant(given: string, known: readonly string[]): string | undefined {
  return nearest(given, known, letters => letters * 2 < given.length)
}
