// `menshen keys new NAME`: a key for a machine, and its row for `machines`; nothing is read or stored. `menshen keys list` and
// `menshen keys revoke`: the personal keys of users.

import { isMachineName, MACHINE_NAME_EXPECTED } from '../../config/machines.ts'
import { createKeyListing, type KeyListing, type ListedKey, UNREADABLE } from '../../keys/personal.ts'
import { createAudit } from '../../observe/audit.ts'
import { allPages } from '../../stores/pages.ts'
import { keySha256, newKey } from '../../util/key-form.ts'
import { safeJson, safeText } from '../../util/safe-text.ts'
import { type CommandRun, openStoredRecords, type StoredRecords, writeProblem } from '../stored-records.ts'
import { type Paint, plainLine, print, word } from '../terminal.ts'
import { readCommandArguments, readSince, refuseArgument, UsageError, usageError } from '../usage.ts'
import { COMMANDS } from './table.ts'

const ROW = COMMANDS.keys
const PAGE = 100
const PATIENCE_MS = 10_000

/** `run` is called only by the verbs that read the settings. */
export async function runKeysCommand(args: readonly string[], run: () => CommandRun): Promise<void> {
  const { values, positionals } = readCommandArguments(args, ROW)
  const [verb, argument, ...more] = positionals
  if (more.length > 0) throw refuseArgument(more[0] ?? '', ROW)
  if (verb === 'new') {
    refuseOptions(values, verb, ['user', 'before', 'json'])
    await print([newMachineKey(argument)])
  } else if (verb === 'list') {
    if (argument !== undefined) throw refuseArgument(argument, ROW)
    refuseOptions(values, verb, ['before'])
    assertName(values.user)
    await withKeys(run(), (_records, keys, { paint }) => list(keys, values, paint))
  } else if (verb === 'revoke') {
    refuseOptions(values, verb, ['json'])
    assertName(values.user)
    const { now, ...rest } = run()
    const revocation = readRevocation(argument, values, now())
    await withKeys({ now, ...rest }, (records, keys) => revoke(records, keys, revocation, now))
  } else throw verb === undefined ? usageError('A verb is missing', ROW) : refuseArgument(verb, ROW)
}

interface Values {
  readonly user?: string
  readonly before?: string
  readonly json: boolean
}

function refuseOptions(values: Values, verb: string, names: readonly (keyof Values)[]): void {
  for (const name of names) if (values[name]) throw usageError(`--${name} has no meaning for "${verb}"`, ROW)
}

function assertName(user: string | undefined): void {
  if (user === '') throw usageError('--user has no name', ROW)
}

export function newMachineKey(name: string | undefined): string {
  if (name === undefined) throw usageError('The name of the machine is missing', ROW)
  if (!isMachineName(name)) throw new UsageError(`The name is "${safeText(name)}"; ${MACHINE_NAME_EXPECTED}.`)
  const key = newKey()
  return `Key for ${name}. It is shown only once; store it where only ${name} can read it:

  ${key}

Its row for \`machines\` in menshen.config.ts. \`groups\` and \`expires\` can be added:

  { name: '${name}', keySha256: '${keySha256(key)}' },
`
}

async function withKeys(
  run: CommandRun,
  act: (records: StoredRecords, keys: KeyListing, run: CommandRun) => Promise<void>,
): Promise<void> {
  const records = await openStoredRecords(run)
  try {
    await act(records, createKeyListing({ store: records.store, allKeys: async () => records.allKeys }), run)
  } finally {
    await records.store.close()
  }
}

// The list, the newest first.

async function list(keys: KeyListing, { user, json }: Values, paint: Paint): Promise<void> {
  const found: ListedKey[] = []
  let unreadable = user === undefined ? 0 : await countUnreadable(keys)
  for await (const page of pagesOf(keys, user)) {
    found.push(...page.keys)
    unreadable += page.unreadable
  }
  found.sort((one, other) => other.createdAt - one.createdAt)
  await print(found.map(key => (json ? `${safeJson(fieldsOf(key))}\n` : plainOf(key, paint))))
  if (unreadable > 0)
    process.stderr.write(
      `${countOf(unreadable)} ${unreadable === 1 ? 'was' : 'were'} created under a secret that is not in SECRET any more${
        user === undefined ? '' : `, and may be ${safeText(user)}’s`
      }.\n`,
    )
  // Not on stdout: another program may read that.
  else if (found.length === 0 && !json)
    process.stderr.write(
      user === undefined ? 'There are no personal keys.\n' : `${safeText(user)} has no personal keys.\n`,
    )
}

function pagesOf(keys: KeyListing, username?: string) {
  return allPages(after => keys.list({ username, limit: PAGE, after }))
}

async function countUnreadable(keys: KeyListing): Promise<number> {
  let count = 0
  for await (const { unreadable } of pagesOf(keys)) count += unreadable
  return count
}

/** As the API names them. */
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

function countOf(count: number): string {
  return `${count} personal ${count === 1 ? 'key' : 'keys'}`
}

// Revocation.

type Revocation = { readonly id: string } | { readonly user: string } | { readonly before: number }

function readRevocation(id: string | undefined, { user, before }: Values, now: number): Revocation {
  if ([id, user, before].filter(given => given !== undefined).length === 1) {
    if (id) return { id }
    if (user !== undefined) return { user }
    if (before !== undefined) return { before: readSince(before, now, '--before') }
  }
  throw usageError('"revoke" needs one of these: the id of a key, the name of a user, a time', ROW)
}

async function revoke(
  records: StoredRecords,
  keys: KeyListing,
  revocation: Revocation,
  now: () => number,
): Promise<void> {
  const audit = createAudit({ ...records, now, report: writeProblem })
  try {
    if ('id' in revocation) await revokeOne(keys, revocation.id, audit)
    else if ('user' in revocation) await revokeOf(keys, revocation.user, audit)
    else await revokeBefore(keys, revocation.before, audit)
  } finally {
    await audit.close(PATIENCE_MS)
  }
}

type Audit = Pick<ReturnType<typeof createAudit>, 'onEvent'>

async function revokeOne(keys: KeyListing, id: string, audit: Audit): Promise<void> {
  const revoked = await keys.revoke(id)
  if (!revoked) {
    process.stderr.write(`There is no personal key "${safeText(id)}"; menshen keys list has the ids.\n`)
    process.exitCode = 1
    return
  }
  const { user, provider, name } = revoked
  audit.onEvent('key_revoked', { user, provider, by: 'command', name })
  process.stdout.write(`The personal key ${word(name)} of ${safeText(user)} is revoked.\n`)
}

async function revokeOf(keys: KeyListing, user: string, audit: Audit): Promise<void> {
  const revoked = await keys.revokeOf(user)
  if (revoked > 0) audit.onEvent('key_revoked', { user, by: 'command', revoked })
  process.stdout.write(`${countOf(revoked)} of ${safeText(user)} revoked.\n`)
  refuseUnreadable(await countUnreadable(keys), ` and may be ${safeText(user)}’s`)
}

/** One event per user: the same name at two providers is two users. */
async function revokeBefore(keys: KeyListing, before: number, audit: Audit): Promise<void> {
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
    // Also if the store fails in between: what was done is written down.
    for (const fields of users.values()) audit.onEvent('key_revoked', { ...fields, by: 'command' })
  }
  process.stdout.write(`${countOf(count)} created before ${timeOf(before)} revoked.\n`)
  refuseUnreadable(unreadable)
}

function refuseUnreadable(count: number, whose = ''): void {
  if (count === 0) return
  process.stderr.write(
    `${countOf(count)} cannot be read with this SECRET${whose}; put the former secret behind the present one in SECRET, and revoke them again.\n`,
  )
  process.exitCode = 1
}
