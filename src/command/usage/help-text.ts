// What `--help` prints, of everything or of one command, from the rows of command-table.ts.
import {
  COMMAND_NAMES,
  COMMANDS,
  type CommandName,
  type CommandRow,
  EXIT_CODES,
  GLOBAL_OPTIONS,
  type OptionRow,
  START,
} from './command-table.ts'

type Pair = readonly [name: string, sentence: string]

export function helpText(): string {
  return page([
    ['Menshen: sign-in in front of any web application.'],
    [
      'Usage:',
      ...columns([
        ['menshen', START.sentence],
        ['menshen COMMAND [options]', 'does one of these:'],
      ]),
    ],
    ['Commands:', ...columns(COMMAND_NAMES.map(name => [name, COMMANDS[name].sentence]))],
    ['Options:', ...columns(GLOBAL_OPTIONS.map(({ names, sentence }) => [names.join(', '), sentence]))],
    ['Exit codes:', ...columns(Object.entries(EXIT_CODES))],
    ['menshen help COMMAND has more on each. All settings are in docs/settings.md, all commands in docs/commands.md.'],
  ])
}

export function commandHelpText(name: CommandName): string {
  const { sentence, usage, details, options, examples, fails }: CommandRow = COMMANDS[name]
  const optionRows = Object.entries(options).map(([option, row]): Pair => [optionForm(option, row), row.sentence])
  return page([
    [`menshen ${name} ${sentence}.`],
    ['Usage:', ...usage.map(line => `  ${line}`)],
    ...(details === undefined ? [] : [wrapped(details)]),
    ...(optionRows.length === 0 ? [] : [['Options:', ...columns(optionRows)]]),
    ['Examples:', ...columns(examples)],
    ['Exit codes:', ...columns(exitCodesOf(fails))],
  ])
}

/** Those of one command. */
export function exitCodesOf(fails: string | undefined): Pair[] {
  return [['0', 'all is well'], ...(fails === undefined ? [] : [['1', fails] as const]), ['2', EXIT_CODES[2]]]
}

export function optionForm(name: string, { value }: OptionRow): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

function page(parts: readonly (readonly string[])[]): string {
  return `${parts.map(lines => lines.join('\n')).join('\n\n')}\n`
}

function columns(pairs: readonly Pair[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, sentence]) => `  ${name.padEnd(width)}  ${sentence}`)
}

const WIDTH = 100

function wrapped(text: string): string[] {
  return text.match(new RegExp(`.{1,${WIDTH}}(?:\\s+|$)`, 'g'))?.map(line => line.trimEnd()) ?? []
}
