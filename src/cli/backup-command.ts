// `menshen backup DIR`: a consistent copy of the embedded store, also while Menshen runs.
import { existsSync, readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { readSettings } from '../config/read.ts'
import { MenshenError } from '../errors.ts'
import { copyLmdbStore } from '../stores/lmdb/lmdb-files.ts'
import { COMMANDS } from './command-table.ts'
import type { CommandRun } from './stored-records.ts'
import { say } from './terminal.ts'
import { readCommandArguments, refuseArgument, usageError } from './usage.ts'

export async function runBackupCommand(args: readonly string[], { environment }: CommandRun): Promise<void> {
  const [target, ...more] = readCommandArguments(args, COMMANDS.backup).positionals
  if (more.length > 0) throw refuseArgument(more[0] ?? '', COMMANDS.backup)
  if (!target) throw usageError('There is no folder for the copy', COMMANDS.backup)
  const source = embeddedFolder(readSettings(environment).STORE)
  // The copy is readable by this account alone, as the store is.
  const umask = process.umask(0o077)
  try {
    await makeEmptyFolder(target)
    await copyLmdbStore(source, resolve(target))
  } finally {
    process.umask(umask)
  }
  await say([`The store of ${source} is copied to ${target}.\n`])
}

function embeddedFolder(address: string): string {
  const folder = address.startsWith('lmdb:') ? address.slice('lmdb:'.length) : undefined
  if (folder === undefined)
    throw new MenshenError(
      'cannot_start',
      `Only the embedded store can be copied (STORE=lmdb:DIRECTORY). ${
        address === 'memory:' ? '"memory:" keeps nothing' : 'Copy a Redis by its own means, such as BGSAVE'
      }.`,
    )
  if (!existsSync(join(folder, 'data.mdb')))
    throw new MenshenError('cannot_start', `There is no store in ${folder}: no Menshen has kept anything there yet.`)
  return folder
}

/** Only an empty one: whatever is there already is not overwritten. */
async function makeEmptyFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (readdirSync(folder).length === 0) return
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new MenshenError('cannot_start', `The folder ${folder} cannot be used (${reason}).`, cause)
  }
  throw new MenshenError('cannot_start', `The folder ${folder} is not empty; expected a new or empty one.`)
}
