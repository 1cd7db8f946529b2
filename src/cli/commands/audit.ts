// `menshen audit`: the audit trail, the oldest first, also while Menshen runs.
import { AUDITED, type AuditEvent, jsonLine } from '../../observe/audit-event.ts'
import { createTrailReader } from '../../observe/audit-trail.ts'
import { type CommandRun, openStoredRecords } from '../stored-records.ts'
import { type Paint, plainLine, print, word } from '../terminal.ts'
import { likelyMeant, readCommandArguments, readSince, refuseArgument, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

/** Longer than every code of today. */
const EVENT_WIDTH = 22

export async function runAuditCommand(args: readonly string[], run: CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.audit)
  const { user, event, request, since, json } = values
  if (positionals.length > 0) throw refuseArgument(positionals[0] ?? '', COMMANDS.audit)
  if (user === '') throw usageError('--user has no name', COMMANDS.audit)
  if (event !== undefined) assertAudited(event)
  if (request === '') throw usageError('--request has no id', COMMANDS.audit)
  const filter = {
    ...(user === undefined ? {} : { user }),
    ...(event === undefined ? {} : { event }),
    ...(request === undefined ? {} : { requestId: request }),
    ...(since === undefined ? {} : { since: readSince(since, run.now()) }),
  }
  const { store, keyring } = await openStoredRecords(run)
  const reader = createTrailReader({ store, keyring })
  let unreadable = 0

  async function* lines(): AsyncGenerator<string> {
    for await (const event of reader.walk(filter)) {
      if (event === 'unreadable') unreadable++
      else yield json ? jsonLine(event) : lineOf(event, run.paint)
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

/** A code that no event has would find nothing, and look as if nothing had happened. */
function assertAudited(code: string): void {
  if (!AUDITED.some(each => each === code))
    throw usageError(
      `"${code}" is not an audited event`,
      COMMANDS.audit,
      likelyMeant(code, AUDITED) ?? AUDITED.join(', '),
    )
}

function lineOf({ time, event, fields: { user, ...fields } }: AuditEvent, paint: Paint): string {
  return plainLine(time, [word(event).padEnd(EVENT_WIDTH), user === undefined ? '-' : word(user)], fields, paint)
}
