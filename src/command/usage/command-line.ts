// What was typed behind `menshen`: a start, a command with its arguments, or a question about them.
import { COMMAND_NAMES, COMMANDS, type CommandName, type CommandRow, GLOBAL_OPTIONS } from './command-table.ts'
import { likelyMeant, UsageError } from './usage-error.ts'

export type Asked =
  | { readonly kind: 'start' }
  | { readonly kind: 'version' }
  /** Of all, or of one command. */
  | { readonly kind: 'help'; readonly command?: CommandName }
  | { readonly kind: 'command'; readonly command: Exclude<CommandName, 'help'>; readonly args: readonly string[] }

const [HELP, VERSION]: readonly (readonly string[])[] = GLOBAL_OPTIONS.map(({ names }) => names)

export function readCommandLine([first, ...rest]: readonly string[]): Asked {
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

function readHelp(args: readonly string[]): Asked {
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
  const remedy = likely ? `did you mean ${likely}?` : `there is: ${COMMAND_NAMES.join(', ')}.`
  throw new UsageError(`Unknown command ${name}; ${remedy} Without a command Menshen starts.`)
}

function unknownOption(given: string): string {
  const names = GLOBAL_OPTIONS.flatMap(({ names }): readonly string[] => names)
  const likely = likelyMeant(given, names)
  if (likely) return `Unknown option ${given}; did you mean ${likely}?`
  return `Unknown option ${given}; settings are given by the environment or .env, for example PORT=4000, and the commands are: ${COMMAND_NAMES.join(', ')}.`
}
