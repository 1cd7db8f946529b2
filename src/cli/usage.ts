// The command line: commands, options and arguments, and the help that explains them.

import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Environment } from '../config/settings.ts'
import { nearest } from '../config/suggestions.ts'
import { helpZhCN } from '../text/help-zh-CN.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseIn, quoted } from '../text/text.ts'
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

/** Everything after `--` is a value, whatever it looks like. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? args.length : end).some(argument => HELP?.includes(argument))
}

function readHelp(args: readonly string[]): CommandLine {
  const [name, verb, ...more] = args.filter(argument => !HELP?.includes(argument))
  if (name === undefined) return { kind: 'help' }
  const command = commandNamed(name)
  const { verbs = [] }: CommandRow = COMMANDS[command]
  // `menshen help rules check` is accepted like `menshen help rules`.
  const odd = verb !== undefined && !verbs.includes(verb) ? verb : more[0]
  if (odd !== undefined) throw refuseArgument(odd, COMMANDS.help)
  return { kind: 'help', command }
}

function commandNamed(name: string): CommandName {
  const command = COMMAND_NAMES.find(known => known === name)
  if (command) return command
  const option = GLOBAL_OPTIONS.flatMap(({ names }): readonly string[] => names).find(known => known === `--${name}`)
  const likely = option ?? suggestName(name, COMMAND_NAMES)
  throw new UsageError(
    likely
      ? phrase('cli.unknown_command_likely', { name, likely })
      : phrase('cli.unknown_command', { name, commands: COMMAND_NAMES }),
  )
}

function unknownOption(given: string): Phrase {
  const names = GLOBAL_OPTIONS.flatMap(({ names }): readonly string[] => names)
  const likely = suggestName(given, names)
  if (likely) return phrase('cli.unknown_global_likely', { option: given, likely })
  return phrase('cli.unknown_global', { option: given, commands: COMMAND_NAMES })
}

// The arguments of a command: parsed strictly by its row, and refused in one message.

type Row<Options> = Pick<CommandRow, 'usage' | 'verbs'> & { readonly options: Options }

export function readCommandArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  row: Row<Options>,
) {
  const { options } = row
  return parseArgs({ args: checkedArguments(args, row), options, allowPositionals: true })
}

/** What looks like an option. An id that begins with a dash also has capital letters or digits. */
const OPTION = /^--?[a-z][a-z-]*(?:=|$)/

/**
 * Refuses wrong options before Node does: Node's errors are only text, and do not suggest what was meant. Returns each option in one
 * piece with its value, because Node would refuse a value that begins with a dash, as one session id in 64 does.
 */
function checkedArguments(args: readonly string[], row: Row<ParseArgsOptionsConfig>): string[] {
  const { options } = row
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const given = tokens.filter(token => token.kind === 'option')
  const names = Object.keys(options).map(name => `--${name}`)
  for (const { name, rawName } of given)
    if (!Object.hasOwn(options, name))
      throw usageError(phrase('cli.unknown_option', { option: rawName }), row, suggestName(rawName, names))
  for (const { name, rawName, value, inlineValue } of given) {
    const takesValue = options[name]?.type === 'string'
    if (takesValue && value === undefined) throw usageError(phrase('cli.value_missing', { name }), row)
    if (!takesValue && value !== undefined) throw usageError(phrase('cli.value_surplus', { name }), row)
    // `--user --json`: the value was probably forgotten.
    if (!inlineValue && value !== undefined && OPTION.test(value))
      throw usageError(phrase('cli.value_ambiguous', { option: rawName }), row)
  }
  return tokens.map(token => {
    if (token.kind === 'positional') return token.value
    if (token.kind === 'option-terminator') return '--'
    return token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`
  })
}

/** The error for a word that is not an option and that the row's usage does not list. */
export function refuseArgument(argument: string, row: Pick<CommandRow, 'usage' | 'verbs'>): UsageError {
  return usageError(phrase('cli.unexpected', { argument }), row, suggestName(argument, row.verbs ?? []))
}

export function usageError(problem: Phrase, row: Pick<CommandRow, 'usage'>, likely?: string): UsageError {
  const usage = row.usage.map(line => quoted(line)).reduce((one, other) => phrase('cli.or', { one, other }))
  return new UsageError(
    likely === undefined
      ? phrase('cli.usage', { problem, usage })
      : phrase('cli.usage_likely', { problem, usage, likely }),
  )
}

/** The output language: that of `--language`, otherwise that of the terminal's locale. */
export function operatorLanguage(
  asked: string | undefined,
  environment: Environment,
  row: Pick<CommandRow, 'usage'>,
): OperatorLanguage {
  if (asked === undefined) return localeLanguage(environment)
  if (isChinese(asked)) return 'zh-CN'
  if (/^en\b/i.test(asked)) return 'en'
  throw usageError(phrase('cli.unknown_language', { asked }), row)
}

/** The language of the locale, in the POSIX order. */
export function localeLanguage({ LC_ALL, LC_MESSAGES, LANG }: Environment): OperatorLanguage {
  return isChinese(LC_ALL || LC_MESSAGES || LANG || '') ? 'zh-CN' : 'en'
}

/** The language of an error message. The command line itself may be wrong, so it is read leniently. */
export function errorLanguage(argv: readonly string[], environment: Environment): OperatorLanguage {
  const at = argv.findIndex(argument => /^--language(?:=|$)/.test(argument))
  const asked = at < 0 ? '' : (/=(.*)/.exec(argv[at] ?? '')?.[1] ?? argv[at + 1] ?? '')
  if (isChinese(asked)) return 'zh-CN'
  return /^en\b/i.test(asked) ? 'en' : localeLanguage(environment)
}

/** `zh`, `zh-CN`, `zh_CN.UTF-8`. */
function isChinese(name: string): boolean {
  return /^zh(?![a-z])/i.test(name)
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a time, a day, or a duration before now. As in the log, a time without a zone is UTC. */
export function readSince(text: string, now: number, option = '--since'): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNITS[unit as keyof typeof UNITS]
  const [, day, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? []
  const at = Date.parse(`${day}T${time}${zone}`)
  // The 31st of a short month would be taken for a day of the next month.
  const isDay = !Number.isNaN(at) && new Date(`${day}T00:00Z`).toISOString().startsWith(`${day}T`)
  if (isDay) return at
  throw new UsageError(phrase('cli.bad_time', { option, text }))
}

// What `--help` prints, for everything or for one command, from the rows of commands/table.ts.

type Pair = readonly [name: string, description: string]

/** The texts of `--help` in a language other than English, keyed by the names of the rows. */
interface HelpTexts {
  readonly about: string
  readonly heads: Readonly<Record<'usage' | 'commands' | 'options' | 'examples' | 'exitCodes', string>>
  readonly command: string
  readonly more: string
  readonly start: string
  readonly global: readonly string[]
  readonly good: string
  readonly exitCodes: Readonly<Record<keyof typeof EXIT_CODES, string>>
  readonly commands: {
    readonly [N in CommandName]: Readonly<Record<'details' | 'fails', string | undefined>> & {
      readonly description: string
      readonly options: { readonly [O in keyof (typeof COMMANDS)[N]['options']]: string }
      readonly examples: readonly string[]
    }
  }
}

const ENGLISH = {
  about: 'Menshen adds sign-in to any web application.',
  heads: {
    usage: 'Usage:',
    commands: 'Commands:',
    options: 'Options:',
    examples: 'Examples:',
    exitCodes: 'Exit codes:',
  },
  command: 'runs a command:',
  more: 'Run menshen help COMMAND for details. Settings: docs/settings.md. Commands: docs/commands.md.',
  good: 'success',
} as const

const textsIn = (language: OperatorLanguage): HelpTexts | undefined => (language === 'zh-CN' ? helpZhCN : undefined)

export function helpText(language: OperatorLanguage = 'en'): string {
  const texts = textsIn(language)
  const { about, heads, command, more } = texts ?? ENGLISH
  return page([
    [about],
    [
      heads.usage,
      ...columns([
        ['menshen', texts?.start ?? START.description],
        ['menshen COMMAND [options]', command],
      ]),
    ],
    [
      heads.commands,
      ...columns(COMMAND_NAMES.map(name => [name, texts?.commands[name].description ?? COMMANDS[name].description])),
    ],
    [
      heads.options,
      ...columns(
        GLOBAL_OPTIONS.map(({ names, description }, n) => [names.join(', '), texts?.global[n] ?? description]),
      ),
    ],
    [heads.exitCodes, ...columns(Object.entries(texts?.exitCodes ?? EXIT_CODES))],
    [more],
  ])
}

export function commandHelpText(name: CommandName, language: OperatorLanguage = 'en'): string {
  const texts = textsIn(language)
  const { heads } = texts ?? ENGLISH
  const row: CommandRow = COMMANDS[name]
  const { description, details, fails } = texts?.commands[name] ?? row
  const meanings: Readonly<Record<string, string>> = texts?.commands[name].options ?? {}
  const optionRows = Object.entries(row.options).map(
    ([option, each]): Pair => [optionForm(option, each), meanings[option] ?? each.description],
  )
  const examples = row.examples.map(([line, meaning], n): Pair => [line, texts?.commands[name].examples[n] ?? meaning])
  return page([
    [texts ? `menshen ${name}：${description}。` : `menshen ${name} ${description}.`],
    [heads.usage, ...row.usage.map(line => `  ${line}`)],
    ...(details === undefined ? [] : [texts ? [details] : wrapped(details)]),
    ...(optionRows.length === 0 ? [] : [[heads.options, ...columns(optionRows)]]),
    [heads.examples, ...columns(examples)],
    [heads.exitCodes, ...columns(exitCodesOf(fails, texts))],
  ])
}

/** The exit codes of one command. */
function exitCodesOf(fails: string | undefined, texts: HelpTexts | undefined): Pair[] {
  const { good } = texts ?? ENGLISH
  const wrong = (texts?.exitCodes ?? EXIT_CODES)[2]
  return [['0', good], ...(fails === undefined ? [] : [['1', fails] as const]), ['2', wrong]]
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

// An invalid command line. Its exit code differs from that of every other error.

export class UsageError extends Error {
  readonly phrase: Phrase

  constructor(given: Phrase) {
    const message = phraseIn('en', given)
    super(safeText(`${message.charAt(0).toUpperCase()}${message.slice(1)}`))
    this.name = 'UsageError'
    this.phrase = given
  }
}

/** What was probably meant; `undefined` if no known name is near. */
export function suggestName(given: string, known: readonly string[]): string | undefined {
  return nearest(given, known, letters => letters * 2 < given.length)
}
