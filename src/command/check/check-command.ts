// `menshen check`: whether the settings and the configuration can be used, for CI and before a restart.
import { type Phrase, phrase, phraseIn } from '../../phrases.ts'
import type { Environment } from '../../settings/read.ts'
import { factLines } from '../announce.ts'
import type { Paint } from '../terminal/colours.ts'
import { terminalLines } from '../terminal/terminal-lines.ts'
import { readCommandArguments, refuseArgument } from '../usage/command-arguments.ts'
import { COMMANDS } from '../usage/command-table.ts'
import { operatorLanguage } from '../usage/operator-language.ts'
import { inspect } from './inspect.ts'

export interface CheckRun {
  /** Without the file .env, which is looked at too. */
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

interface Outcome {
  /** For stdout. */
  readonly text: string
  /** For stderr: one sentence a line for each thing that is wrong, and nothing else. */
  readonly problems: string
}

export async function runCheckCommand(args: readonly string[], run: CheckRun): Promise<Outcome> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.check)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.check)
  const language = operatorLanguage(values.language, run.environment, COMMANDS.check)
  const { problems, misspelt, warnings, facts } = await inspect(run.environment, run.now)
  const said = (given: Phrase) => phraseIn(language, given)
  const marked = (given: readonly Phrase[]) => given.map(one => `${run.paint('yellow', '!')} ${safe(said(one))}\n`)
  // A name with a slip may be why something is missing; what is merely risky can wait.
  if (problems.length > 0)
    return { text: marked(misspelt).join(''), problems: terminalLines(problems.map(said).join('\n')) }
  const lines = [
    `${run.paint('green', '✔')} ${said(phrase('everything_usable'))}\n`,
    ...(facts ? factLines(facts).map(line => `  ${safe(line)}\n`) : []),
    ...marked([...misspelt, ...warnings]),
  ]
  return { text: lines.join(''), problems: '' }
}

function safe(line: string): string {
  return terminalLines(line.replace(/[\r\n]+/g, ' ')).trimEnd()
}
