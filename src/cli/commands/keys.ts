// `menshen keys new NAME` creates a key for a machine and its row for `machines`; it reads and stores nothing. `menshen keys list`
// and `menshen keys revoke` handle the personal keys of users.

import { isMachineName } from '../../config/machines.ts'
import type { Environment } from '../../config/settings.ts'
import { createKeyListing, type KeyListing, type ListedKey, UNREADABLE } from '../../keys/personal.ts'
import { createAudit } from '../../observe/audit.ts'
import { allPages } from '../../stores/pages.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseIn } from '../../text/text.ts'
import { keySha256, newKey } from '../../util/key-form.ts'
import { safeJson } from '../../util/safe-text.ts'
import { type CommandRun, openStoredRecords, type StoredRecords, writeProblem } from '../stored-records.ts'
import { createPrinter, type Paint, type Printer, plainLine, print, word } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, readSince, refuseArgument, UsageError, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

const ROW = COMMANDS.keys
const PAGE = 100
const CLOSE_TIMEOUT_MS = 10_000

/** Only verbs that read the settings call `run`; the others need only the locale. */
export async function runKeysCommand(
  args: readonly string[],
  run: () => CommandRun,
  locale: Environment = {},
): Promise<void> {
  const { values, positionals } = readCommandArguments(args, ROW)
  const [verb, argument, ...more] = positionals
  if (more.length > 0) throw refuseArgument(more[0] ?? '', ROW)
  if (verb === 'new') {
    refuseOptions(values, verb, ['user', 'before', 'json'])
    await print([newMachineKey(argument, operatorLanguage(values.language, locale, ROW))])
  } else if (verb === 'list') {
    if (argument !== undefined) throw refuseArgument(argument, ROW)
    refuseOptions(values, verb, ['before'])
    assertName(values.user)
    const listing = run()
    const printer = createPrinter(operatorLanguage(values.language, listing.environment, ROW))
    await withKeys(listing, (_records, keys, { paint }) => list(keys, values, paint, printer), { isList: true })
  } else if (verb === 'revoke') {
    refuseOptions(values, verb, ['json'])
    assertName(values.user)
    const { now, ...rest } = run()
    const revocation = readRevocation(argument, values, now())
    const printer = createPrinter(operatorLanguage(values.language, rest.environment, ROW))
    await withKeys({ now, ...rest }, (records, keys) => revoke(records, keys, revocation, now, printer))
  } else throw verb === undefined ? usageError(phrase('cli.nothing_to_do'), ROW) : refuseArgument(verb, ROW)
}

interface Values {
  readonly user?: string
  readonly before?: string
  readonly json: boolean
  readonly language?: string
}

function refuseOptions(values: Values, verb: string, names: readonly (keyof Values)[]): void {
  for (const name of names)
    if (values[name]) throw usageError(phrase('cli.option_without_meaning', { name, verb }), ROW)
}

function assertName(user: string | undefined): void {
  if (user === '') throw usageError(phrase('cli.user_without_name'), ROW)
}

export function newMachineKey(name: string | undefined, language: OperatorLanguage = 'en'): string {
  if (name === undefined) throw usageError(phrase('cli.no_machine_name'), ROW)
  if (!isMachineName(name)) throw new UsageError(phrase('cli.bad_machine_name', { name }))
  const key = newKey()
  const row = `{ name: '${name}', keySha256: '${keySha256(key)}' }`
  return `${phraseIn(language, phrase('cli.new_key', { name }))}

  ${key}

${phraseIn(language, phrase('cli.new_key_row'))}

  // menshen.config.ts
  ${row},

  # menshen.config.yaml
  - ${row}
`
}

async function withKeys(
  run: CommandRun,
  act: (records: StoredRecords, keys: KeyListing, run: CommandRun) => Promise<void>,
  { isList = false } = {},
): Promise<void> {
  const records = await openStoredRecords(run, { isList })
  try {
    await act(records, createKeyListing({ store: records.store, allKeys: async () => records.allKeys }), run)
  } finally {
    await records.store.close()
  }
}

// The list, newest first.

async function list(keys: KeyListing, { user, json }: Values, paint: Paint, printer: Printer): Promise<void> {
  const found: ListedKey[] = []
  let unreadable = user === undefined ? 0 : await countUnreadable(keys)
  for await (const page of pagesOf(keys, user)) {
    found.push(...page.keys)
    unreadable += page.unreadable
  }
  found.sort((one, other) => other.createdAt - one.createdAt)
  await print(found.map(key => (json ? `${safeJson(fieldsOf(key))}\n` : plainOf(key, paint))))
  if (unreadable > 0)
    printer.toStderr(
      user === undefined
        ? phrase('cli.keys_unreadable', { count: unreadable })
        : phrase('cli.keys_unreadable_of', { count: unreadable, user }),
    )
  // Not on stdout, which another program may read.
  else if (found.length === 0 && !json)
    printer.toStderr(user === undefined ? phrase('cli.no_keys') : phrase('cli.no_keys_of', { user }))
}

function pagesOf(keys: KeyListing, username?: string) {
  return allPages(after => keys.list({ username, limit: PAGE, after }))
}

async function countUnreadable(keys: KeyListing): Promise<number> {
  let count = 0
  for await (const { unreadable } of pagesOf(keys)) count += unreadable
  return count
}

/** The field names are those of the API. */
function fieldsOf({ id, user, provider, name, createdAt, expiresAt, usedAt }: ListedKey) {
  const lastUsed = usedAt === undefined ? undefined : timeOf(usedAt)
  return { id, user, provider, name, created: timeOf(createdAt), expires: timeOf(expiresAt), lastUsed }
}

function plainOf(key: ListedKey, paint: Paint): string {
  const { user, created: _created, ...fields } = fieldsOf(key)
  return plainLine(key.createdAt, [word(user)], fields, paint)
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

// Revocation.

type Revocation = { readonly id: string } | { readonly user: string } | { readonly before: number }

function readRevocation(id: string | undefined, { user, before }: Values, now: number): Revocation {
  if ([id, user, before].filter(given => given !== undefined).length === 1) {
    if (id) return { id }
    if (user !== undefined) return { user }
    if (before !== undefined) return { before: readSince(before, now, '--before') }
  }
  throw usageError(phrase('cli.revoke_needs_one'), ROW)
}

async function revoke(
  records: StoredRecords,
  keys: KeyListing,
  revocation: Revocation,
  now: () => number,
  printer: Printer,
): Promise<void> {
  const audit = createAudit({ ...records, now, report: writeProblem })
  try {
    if ('id' in revocation) await revokeOne(keys, revocation.id, audit, printer)
    else if ('user' in revocation) await revokeOf(keys, revocation.user, audit, printer)
    else await revokeBefore(keys, revocation.before, audit, printer)
  } finally {
    await audit.close(CLOSE_TIMEOUT_MS)
  }
}

type Audit = Pick<ReturnType<typeof createAudit>, 'onEvent'>

async function revokeOne(keys: KeyListing, id: string, audit: Audit, printer: Printer): Promise<void> {
  const revoked = await keys.revoke(id)
  if (!revoked) {
    printer.toStderr(phrase('cli.no_such_key', { id }))
    process.exitCode = 1
    return
  }
  const { user, provider, name } = revoked
  audit.onEvent('key_revoked', { user, provider, by: 'command', name })
  printer.toStdout(phrase('cli.key_revoked', { name: word(name), user }))
}

async function revokeOf(keys: KeyListing, user: string, audit: Audit, printer: Printer): Promise<void> {
  const revoked = await keys.revokeOf(user)
  if (revoked > 0) audit.onEvent('key_revoked', { user, by: 'command', revoked })
  printer.toStdout(phrase('cli.keys_revoked_of', { count: revoked, user }))
  const unreadable = await countUnreadable(keys)
  if (unreadable > 0) failWith(phrase('cli.revoke_again_of', { count: unreadable, user }), printer)
}

/** One event per user. The same name at two providers is two users. */
async function revokeBefore(keys: KeyListing, before: number, audit: Audit, printer: Printer): Promise<void> {
  const users = new Map<string, { user: string; provider?: string | undefined; revoked: number }>()
  let unreadable = 0
  let count = 0
  try {
    for await (const key of keys.revokeBefore(before)) {
      if (key === UNREADABLE) {
        unreadable++
        continue
      }
      count++
      const { user, provider } = key
      const owner = JSON.stringify([provider, user])
      users.set(owner, { user, provider, revoked: (users.get(owner)?.revoked ?? 0) + 1 })
    }
  } finally {
    // Also if the store fails in between: the revocations so far are recorded.
    for (const fields of users.values()) audit.onEvent('key_revoked', { ...fields, by: 'command' })
  }
  printer.toStdout(phrase('cli.keys_revoked_before', { count, time: timeOf(before) }))
  if (unreadable > 0) failWith(phrase('cli.revoke_again', { count: unreadable }), printer)
}

function failWith(problem: Phrase, printer: Printer): void {
  printer.toStderr(problem)
  process.exitCode = 1
}
