// `menshen audit`: prints the audit trail, oldest first, also while Menshen runs.

import { AUDITED, type AuditEvent, jsonLine } from '../../observe/audit-event.ts'
import { createTrailReader } from '../../observe/audit-trail.ts'
import { phrase } from '../../text/text.ts'
import { type CommandRun, openStoredRecords } from '../stored-records.ts'
import { createPrinter, type Paint, plainLine, print, word } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, readSince, refuseArgument, suggestName, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

/** Longer than every current event code. */
const EVENT_WIDTH = 22

export async function runAuditCommand(args: readonly string[], run: CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.audit)
  const { user, event, request, since, json } = values
  if (positionals.length > 0) throw refuseArgument(positionals[0] ?? '', COMMANDS.audit)
  if (user === '') throw usageError(phrase('cli.user_without_name'), COMMANDS.audit)
  if (event !== undefined) assertAudited(event)
  if (request === '') throw usageError(phrase('cli.request_without_id'), COMMANDS.audit)
  const filter = {
    ...(user === undefined ? {} : { user }),
    ...(event === undefined ? {} : { event }),
    ...(request === undefined ? {} : { requestId: request }),
    ...(since === undefined ? {} : { since: readSince(since, run.now()) }),
  }
  const printer = createPrinter(operatorLanguage(values.language, run.environment, COMMANDS.audit))
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
  if (unreadable > 0) printer.toStderr(phrase('cli.events_unreadable', { count: unreadable }))
}

/** With an unknown code nothing would be found, as if nothing had happened. */
function assertAudited(code: string): void {
  if (AUDITED.some(each => each === code)) return
  const likely = suggestName(code, AUDITED)
  const problem = likely ? phrase('cli.not_audited', { code }) : phrase('cli.not_audited_of', { code, known: AUDITED })
  throw usageError(problem, COMMANDS.audit, likely)
}

function lineOf({ time, event, fields: { user, ...fields } }: AuditEvent, paint: Paint): string {
  return plainLine(time, [word(event).padEnd(EVENT_WIDTH), user === undefined ? '-' : word(user)], fields, paint)
}
