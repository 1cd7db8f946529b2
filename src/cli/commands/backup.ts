// `menshen backup FILE`: a consistent copy of the embedded store, also while Menshen runs.
import { readSettings } from '../../config/read.ts'
import { storeFile } from '../../stores/open.ts'
import { cannotOpen } from '../../stores/sqlite/store.ts'
import { phrase, phrasedError, phraseIn } from '../../text/text.ts'
import { assertExists, type CommandRun } from '../stored-records.ts'
import { print } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, refuseArgument, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

export async function runBackupCommand(args: readonly string[], { environment }: CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.backup)
  const [target, ...more] = positionals
  if (more.length > 0) throw refuseArgument(more[0] ?? '', COMMANDS.backup)
  if (!target) throw usageError(phrase('cli.no_copy_file'), COMMANDS.backup)
  const source = embeddedFile(readSettings(environment).STORE)
  await copy(source, target)
  const language = operatorLanguage(values.language, environment, COMMANDS.backup)
  await print([`${phraseIn(language, phrase('cli.copied', { source, target }))}\n`])
}

function embeddedFile(address: string): string {
  const file = storeFile(address)
  if (file === undefined)
    throw phrasedError(
      'cannot_start',
      address === 'memory:' ? phrase('cli.memory_not_copied') : phrase('cli.redis_not_copied'),
    )
  assertExists(file)
  return file
}

async function copy(source: string, target: string): Promise<void> {
  const { copyDatabase, openForWriting } = await import('../../stores/sqlite/file.ts')
  const database = open()
  try {
    copyDatabase(database, target)
  } catch (cause) {
    if (Object(cause).code === 'EEXIST')
      throw phrasedError('cannot_start', phrase('cli.copy_exists', { target }), cause)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw phrasedError('cannot_start', phrase('cli.copy_failed', { source, target, reason }), cause)
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
