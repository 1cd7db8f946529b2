// `menshen keys new NAME`: a key for a machine, and its row for `machines`. Nothing is read, and nothing is kept.

import { isMachineName, MACHINE_NAME_EXPECTED } from '../config/machines.ts'
import { keySha256, newKey } from '../util/key-form.ts'
import { safeText } from '../util/safe-text.ts'
import { COMMANDS } from './command-table.ts'
import { readCommandArguments, refuseArgument, UsageError, usageError } from './usage.ts'

const ROW = COMMANDS.keys

export function runKeysCommand(args: readonly string[]): string {
  const [verb, name, ...more] = readCommandArguments(args, ROW).positionals
  if (verb !== 'new') throw verb === undefined ? usageError('There is nothing to do', ROW) : refuseArgument(verb, ROW)
  if (more.length > 0) throw refuseArgument(more[0] ?? '', ROW)
  if (name === undefined) throw usageError('There is no name of a machine', ROW)
  if (!isMachineName(name)) throw new UsageError(`The name is "${safeText(name)}"; ${MACHINE_NAME_EXPECTED}.`)
  const key = newKey()
  return `The key of ${name}. It is shown this once; keep it where only ${name} can read it:

  ${key}

Its row for \`machines\` in menshen.config.ts. \`groups\` and \`expires\` can be added:

  { name: '${name}', keySha256: '${keySha256(key)}' },
`
}
