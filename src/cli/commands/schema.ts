// `menshen schema`: prints the JSON Schema of the configuration. The package contains it as menshen.schema.json.

import { readFileSync } from 'node:fs'
import { readCommandArguments, refuseArgument } from '../usage.ts'
import { COMMANDS } from './table.ts'

export function runSchemaCommand(args: readonly string[]): string {
  const { positionals } = readCommandArguments(args, COMMANDS.schema)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.schema)
  return readFileSync(new URL('../../../menshen.schema.json', import.meta.url), 'utf8')
}
