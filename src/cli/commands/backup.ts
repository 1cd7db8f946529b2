// `menshen backup FILE`: a consistent copy of the embedded store, also while Menshen runs.
import { existsSync } from 'node:fs'
import { readSettings } from '../../config/read.ts'
import { MenshenError } from '../../errors.ts'
import { storeFile } from '../../stores/open.ts'
import { cannotOpen } from '../../stores/sqlite/store.ts'
import type { CommandRun } from '../stored-records.ts'
import { print } from '../terminal.ts'
import { readCommandArguments, refuseArgument, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

export async function runBackupCommand(args: readonly string[], { environment }: CommandRun): Promise<void> {
  const [target, ...more] = readCommandArguments(args, COMMANDS.backup).positionals
  if (more.length > 0) throw refuseArgument(more[0] ?? '', COMMANDS.backup)
  if (!target) throw usageError('The file for the copy is missing', COMMANDS.backup)
  const source = embeddedFile(readSettings(environment).STORE)
  await copy(source, target)
  await print([`Copied the store ${source} to ${target}.\n`])
}

function embeddedFile(address: string): string {
  const file = storeFile(address)
  if (file === undefined)
    throw new MenshenError(
      'cannot_start',
      `Only the embedded store can be copied (STORE=sqlite:FILE). ${
        address === 'memory:' ? '"memory:" keeps nothing' : 'Back Redis up with its own tools, such as BGSAVE'
      }.`,
    )
  if (!existsSync(file))
    throw new MenshenError('cannot_start', `No store in ${file}. Has Menshen run with these settings?`)
  return file
}

async function copy(source: string, target: string): Promise<void> {
  const { copyDatabase, openForWriting } = await import('../../stores/sqlite/file.ts')
  const database = open()
  try {
    copyDatabase(database, target)
  } catch (cause) {
    if (Object(cause).code === 'EEXIST')
      throw new MenshenError('cannot_start', `The file ${target} exists; expected the name of a new file.`, cause)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new MenshenError('cannot_start', `The store in ${source} cannot be copied to ${target} (${reason}).`, cause)
  } finally {
    database.close()
  }

  function open() {
    try {
      return openForWriting(source)
    } catch (cause) {
      throw cannotOpen(source, cause)
    }
  }
}
