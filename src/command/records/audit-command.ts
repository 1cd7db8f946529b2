// `menshen audit`: the audit trail, the oldest first, also while Menshen runs.
import { type AuditEvent, jsonLine } from '../../observe/audit/audit-event.ts'
import { createTrailReader } from '../../observe/audit/trail-reader.ts'
import { readCommandArguments, readSince, refusal } from '../command-arguments.ts'
import { type CommandRun, openKeptRecords } from './kept-records.ts'
import { plainLine, word } from './plain-line.ts'
import { print } from './print.ts'

const USAGE = 'menshen audit [--user NAME] [--since TIME] [--json]'
const OPTIONS = {
  user: { type: 'string' },
  since: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const
/** Longer than every code of today. */
const EVENT_WIDTH = 22

export async function runAuditCommand(args: readonly string[], run: CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, OPTIONS, USAGE)
  const { user, since, json } = values
  if (positionals.length > 0) throw refusal(`Unexpected argument "${positionals[0]}"`, USAGE)
  if (user === '') throw refusal('--user has no name', USAGE)
  const filter = {
    ...(user === undefined ? {} : { user }),
    ...(since === undefined ? {} : { since: readSince(since, run.now()) }),
  }
  const { store, keyring } = await openKeptRecords(run)
  const reader = createTrailReader({ store, keyring })
  let unreadable = 0

  async function* lines(): AsyncGenerator<string> {
    for await (const event of reader.walk(filter)) {
      if (event === 'unreadable') unreadable++
      else yield json ? jsonLine(event) : lineOf(event)
    }
  }

  try {
    await print(lines())
  } finally {
    await store.close()
  }
  if (unreadable > 0)
    process.stderr.write(`${unreadable} further events were written under a secret that is not in SECRET any more.\n`)
}

function lineOf({ time, event, facts: { user, ...facts } }: AuditEvent): string {
  return plainLine(time, [word(event).padEnd(EVENT_WIDTH), user === undefined ? '-' : word(user)], facts)
}
