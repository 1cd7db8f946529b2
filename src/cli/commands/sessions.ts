// `menshen sessions`: lists who is signed in, newest first. `menshen sessions end --user NAME` signs a user out everywhere,
// `--session ID` ends one session.

import type { Report } from '../../events.ts'
import { createHostTickets } from '../../hosts/tickets.ts'
import { endUser } from '../../keys/end-user.ts'
import { createKeyListing } from '../../keys/personal.ts'
import { createAudit } from '../../observe/audit.ts'
import { publicId, shortKey } from '../../session/fields.ts'
import { idleEndAfter } from '../../session/idle.ts'
import { createSessionListing, type ListedSession, type SessionListing } from '../../session/listing.ts'
import type { DataKeys } from '../../session/record.ts'
import { isRecordKey } from '../../session/ticket.ts'
import { allPages } from '../../stores/pages.ts'
import { phrase } from '../../text/text.ts'
import { safeJson } from '../../util/safe-text.ts'
import { type CommandRun, openStoredRecords, type StoredRecords, writeProblem } from '../stored-records.ts'
import { createPrinter, type Paint, type Printer, plainLine, print, word } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, refuseArgument, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

const ROW = COMMANDS.sessions
const PAGE = 100
const CLOSE_TIMEOUT_MS = 10_000

export async function runSessionsCommand(args: readonly string[], run: CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, ROW)
  const { user, session, json } = values
  const [verb, ...more] = positionals
  if (more.length > 0 || (verb !== undefined && verb !== 'end')) throw refuseArgument(more[0] ?? verb ?? '', ROW)
  if (user === '') throw usageError(phrase('cli.no_user_name'), ROW)
  if (session === '') throw usageError(phrase('cli.no_session_id'), ROW)
  if (verb === 'end' && (user === undefined) === (session === undefined))
    throw usageError(phrase('cli.end_needs_one'), ROW)
  if (verb === undefined && session !== undefined) throw usageError(phrase('cli.session_for_end'), ROW)
  if (verb === 'end' && json) throw usageError(phrase('cli.end_lists_nothing'), ROW)
  const printer = createPrinter(operatorLanguage(values.language, run.environment, ROW))
  const records = await openStoredRecords(run, { isList: verb === undefined })
  try {
    const sessions = listingsOf(records)
    const fieldsOf = createListedFields(records)
    const lineOf = (fields: ListedFields) => (json ? jsonOf(fields) : plainOf(fields, run.paint))
    if (session !== undefined) await endOne(records, sessions, session, run, printer)
    else if (verb === 'end' && user !== undefined) await end(records, sessions, user, run, printer)
    else {
      const count = await list(sessions, user, async listed => lineOf(await fieldsOf(listed)), printer)
      // Not on stdout, which another program may read.
      if (count === 0 && !json)
        printer.toStderr(user === undefined ? phrase('cli.no_sessions') : phrase('cli.user_not_signed_in', { user }))
    }
  } finally {
    await records.store.close()
  }
}

/** One for each set of data keys that our secrets open: a start with another secret leaves a second set behind. */
type Listings = readonly [SessionListing, ...SessionListing[]]

function listingsOf({ store, allKeys: [first, ...others] }: StoredRecords): Listings {
  const listing = (keys: DataKeys) => createSessionListing({ store, keyring: { current: async () => keys } })
  return [listing(first), ...others.map(listing)]
}

/** Returns the number of sessions, including unreadable ones that may be the user's. */
async function list(sessions: Listings, user: string | undefined, line: FormatLine, printer: Printer): Promise<number> {
  let unreadable = 0
  let count = 0
  const countedLine: FormatLine = listed => {
    count++
    return line(listed)
  }
  async function* counted(): AsyncGenerator<ListedSession> {
    for await (const session of allOf(sessions)) {
      if (!session.summary) unreadable++
      yield session
    }
  }
  await print(linesOf(user === undefined ? counted() : sessionsOf(sessions, user), countedLine))
  if (user !== undefined) unreadable = await countUnreadable(sessions)
  if (unreadable > 0)
    printer.toStderr(
      user === undefined
        ? phrase('cli.sessions_unreadable', { count: unreadable })
        : phrase('cli.sessions_unreadable_of', { count: unreadable, user }),
    )
  return count + unreadable
}

/** Sessions whose user is unknown, because another secret sealed their summary and labelled them. */
async function countUnreadable(sessions: Listings): Promise<number> {
  let count = 0
  for await (const page of allPages(after => sessions[0].list({ limit: PAGE, after }))) {
    const listed = await readWithOtherKeys(page.sessions, sessions)
    count += listed.filter(({ summary }) => !summary).length
  }
  return count
}

/** Tries the other sets of keys for sessions that the first set does not open. */
async function readWithOtherKeys(listed: readonly ListedSession[], [, ...others]: Listings): Promise<ListedSession[]> {
  if (others.length === 0) return [...listed]
  return Promise.all(
    listed.map(async session => {
      if (session.summary) return session
      const found = await Promise.all(others.map(other => other.getListed(session.key)))
      return found.find(each => each?.summary) ?? session
    }),
  )
}

type FormatLine = (session: ListedSession) => Promise<string>

/** Many at the same time, because each may need a request to a remote store. */
async function* linesOf(sessions: AsyncIterable<ListedSession>, line: FormatLine): AsyncGenerator<string> {
  let batch: ListedSession[] = []
  for await (const session of sessions) {
    batch.push(session)
    if (batch.length < PAGE) continue
    yield* await Promise.all(batch.map(line))
    batch = []
  }
  yield* await Promise.all(batch.map(line))
}

async function* allOf(sessions: Listings): AsyncGenerator<ListedSession> {
  for await (const page of allPages(before => sessions[0].newest({ limit: PAGE, before })))
    yield* await readWithOtherKeys(page.sessions, sessions)
}

/** A user has few enough sessions to sort them here. */
async function* sessionsOf(sessions: Listings, username: string): AsyncGenerator<ListedSession> {
  const all: ListedSession[] = []
  for (const listing of sessions)
    for await (const page of allPages(after => listing.list({ username, limit: PAGE, after })))
      all.push(...page.sessions)
  const since = ({ summary }: ListedSession) => summary?.signedInAt ?? 0
  yield* all.sort((one, other) => since(other) - since(one))
}

/** Fields are named as in the log. Little is known of a session whose secret is gone. */
function createListedFields({ store, settings, hasHosts }: StoredRecords) {
  const tickets = hasHosts ? createHostTickets({ store, settings }) : undefined
  return async (listed: ListedSession) => {
    const hosts = (await tickets?.hostsOf(listed.key)) ?? []
    return { ...listedFields(listed, settings.SESSION_IDLE_MINUTES), hosts: hosts.length > 0 ? hosts : undefined }
  }
}

function listedFields({ key, expiresAt, summary }: ListedSession, idleMinutes: number) {
  const { username, userRole, provider, address, userAgent, signedInAt, seenAt } = summary ?? {}
  return {
    user: username,
    role: userRole,
    provider,
    address,
    id: publicId({ key }),
    session: shortKey(key),
    since: timeOf(signedInAt),
    seen: timeOf(seenAt),
    expires: timeOf(expiresAt),
    // When the session ends without activity. In the past if no Menshen has noticed yet.
    idleEnds: timeOf(seenAt === undefined ? undefined : idleEndAfter(seenAt, idleMinutes)),
    userAgent,
  }
}

function timeOf(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString()
}

type ListedFields = Awaited<ReturnType<ReturnType<typeof createListedFields>>>

function jsonOf(fields: ListedFields): string {
  return `${safeJson(fields)}\n`
}

/** Without the short form of the id, which only the log uses. */
function plainOf({ user, since, hosts, session: _short, ...fields }: ListedFields, paint: Paint): string {
  const at = since === undefined ? undefined : Date.parse(since)
  return plainLine(at, [user === undefined ? '-' : word(user)], { ...fields, hosts: hosts?.join() }, paint)
}

async function endOne(
  records: StoredRecords,
  sessions: Listings,
  id: string,
  { now }: CommandRun,
  printer: Printer,
): Promise<void> {
  const listed = isRecordKey(id) ? await sessions[0].getListed(id) : undefined
  const [found] = listed ? await readWithOtherKeys([listed], sessions) : []
  if (!found || !(await sessions[0].end(id))) {
    printer.toStderr(phrase('cli.no_such_session', { id }))
    process.exitCode = 1
    return
  }
  const { username: user, provider } = found.summary ?? {}
  const audit = createAudit({ ...records, now, report: writeProblem })
  audit.onEvent('session_ended', { session: shortKey(id), user, provider, by: 'command', ended: 1 })
  await audit.close(CLOSE_TIMEOUT_MS)
  printer.toStdout(
    user === undefined ? phrase('cli.session_ended') : phrase('cli.sessions_ended_of', { count: 1, user }),
  )
}

async function end(
  records: StoredRecords,
  sessions: Listings,
  user: string,
  { now }: CommandRun,
  printer: Printer,
): Promise<void> {
  const keys = createKeyListing({ store: records.store, allKeys: async () => records.allKeys })
  const audit = createAudit({ ...records, now, report: writeProblem })
  const report: Report = (code, fields = {}) => audit.onEvent(code, fields)
  const count = await endUser({ sessions, keys, report }, user, { by: 'command' }).finally(() =>
    audit.close(CLOSE_TIMEOUT_MS),
  )
  printer.toStdout(phrase('cli.sessions_ended_of', { count: count.ended, user }))
  if (count.keys > 0) printer.toStdout(phrase('cli.keys_ended_of', { count: count.keys, user }))
  const unreadable = await countUnreadable(sessions)
  if (unreadable === 0) return
  printer.toStderr(phrase('cli.end_again', { count: unreadable, user }))
  process.exitCode = 1
}
