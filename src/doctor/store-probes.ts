// Checks whether the store keeps, finds and expires records, and how fast. The doctor writes its own records, under its
// own key and label, and removes them again.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmdirSync, type StatsFs, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { isProduction } from '../config/deployment.ts'
import { hidePassword } from '../config/secret.ts'
import type { Settings } from '../config/settings.ts'
import { inspectDataKeys, needsDataKeys } from '../session/data-keys.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import { type DataKeys, SESSION_LABEL, summaryOf } from '../session/record.ts'
import { openStore, storeFile } from '../stores/open.ts'
import { entryPages } from '../stores/pages.ts'
import type { RedisServerInfo } from '../stores/redis/server-info.ts'
import type { Store } from '../stores/store.ts'
import { type Phrase, phrase, quoted } from '../text/text.ts'
import { isAbsent } from '../util/is-present.ts'
import { sanitize } from '../util/safe-text.ts'
import { type Finding, failure, good, type Probe, reasonOf, warning, whatFailed } from './finding.ts'

const SLOW_MS = 50
const LIFETIME_MS = 60_000
const SHORT_LIFETIME_MS = 100
const MIN_REDIS_VERSION = [6, 2] as const

interface Options {
  readonly settings: Pick<Settings, 'STORE' | 'NODE_ENV'>
  readonly now: () => number
  /** A store that is already open. */
  readonly store?: Store | undefined
  /** Derived from our secrets, where they are known. */
  readonly keys?: Pick<DerivedKeys, 'wrapping' | 'formerWrapping'> | undefined
}

export function storeProbes(options: Options): Probe[] {
  const { STORE } = options.settings
  const probes = [{ name: 'store', run: () => probeStore(options) }]
  return STORE.startsWith('redis') ? [...probes, { name: 'redis', run: () => probeRedis(STORE) }] : probes
}

async function probeStore({ settings, now, store: open, keys }: Options): Promise<Finding[]> {
  const { STORE } = settings
  const inspect = async (store: Store) => [
    ...memory(settings),
    ...(await exerciseStore(store, now)),
    ...(keys ? await probeKeys(store, keys) : []),
  ]
  const file = storeFile(STORE)
  if (open)
    return [...(await inspect(open)), ...(file === undefined ? [] : diskFindings(await statfs(dirname(file)), file))]
  // Opening it would create it, perhaps for another account than the one that runs Menshen.
  if (file !== undefined && isAbsent(file)) return [missingFileFinding(file)]
  const reasons: unknown[] = []
  try {
    const store = await openStore(STORE, now, (code, fields) => {
      if (code === 'store_unreachable') reasons.push(fields?.reason)
    })
    try {
      return [...(await inspect(store)), ...(file === undefined ? [] : await probeFile(file))]
    } finally {
      await store.close()
    }
  } catch (error) {
    const problem = whatFailed(error)
    const reason = sanitize(hidePassword(String(reasons[0])), 200)
    const seen = reasons.length > 0 ? phrase('store_failed', { problem, reason }) : problem
    return [failure('store', seen, remedyFor(STORE))]
  }
}

const MEGABYTE = 1024 * 1024
/** Checking a larger file takes minutes. */
const MAX_CHECKED_FILE_BYTES = 1024 * MEGABYTE
const MIN_FREE_BYTES = 100 * MEGABYTE
/** The file system types of Linux for NFS, SMB, CIFS, SMB2, AFS, Ceph and 9P. */
const NETWORK_TYPES = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0x00c36400, 0x01021997])

/** Not for the process that serves, only for one beside it: the check reads the whole file. */
async function probeFile(file: string): Promise<Finding[]> {
  return [checkFile(file), ...diskFindings(await statfs(dirname(file)), file)]
}

function checkFile(file: string): Finding {
  const { size } = statSync(file)
  if (size > MAX_CHECKED_FILE_BYTES)
    return good('store file', phrase('store_file_large', { size: (size / 1024 / MEGABYTE).toFixed(1) }))
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    const reason = String(Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0])
    if (reason === 'ok') return good('store file', phrase('store_file_whole'))
    return failure(
      'store file',
      phrase('store_file_damaged', { reason: sanitize(reason, 200) }),
      phrase('restore_store'),
    )
  } catch (error) {
    return failure('store file', phrase('store_file_damaged', { reason: reasonOf(error) }), phrase('restore_store'))
  } finally {
    database.close()
  }
}

export function diskFindings(
  { type, bavail, bsize }: Pick<StatsFs, 'type' | 'bavail' | 'bsize'>,
  file: string,
): Finding[] {
  const free = bavail * bsize
  const room = phrase('store_disk_room', { free: Math.floor(free / MEGABYTE) })
  return [
    free < MIN_FREE_BYTES ? warning('store disk', room, phrase('make_store_room')) : good('store disk', room),
    NETWORK_TYPES.has(type)
      ? failure('store file system', phrase('store_on_network', { file }), phrase('move_store_to_local_disk'))
      : good('store file system', phrase('store_on_local_disk')),
  ]
}

function missingFileFinding(file: string): Finding {
  const store = `sqlite:${file}`
  const problem = folderProblem(dirname(resolve(file)))
  if (problem) return failure('store', phrase('store_cannot_be_made', { store, problem }), remedyFor(store))
  return good('store', phrase('store_will_be_made', { store }))
}

/**
 * Why a new database cannot be created; `undefined` if it can. Tries it with a folder that is removed immediately: permissions are
 * misleading for some users and paths, such as root in /proc.
 */
function folderProblem(folder: string): Phrase | undefined {
  if (!existsSync(folder)) return folderProblem(dirname(folder))
  if (!statSync(folder).isDirectory()) return phrase('not_a_folder', { directory: folder })
  try {
    rmdirSync(mkdtempSync(join(folder, '.menshen-')))
    return undefined
  } catch (error) {
    return phrase('nothing_can_be_made', { directory: folder, code: String(Object(error).code) })
  }
}

function remedyFor(address: string): Phrase {
  return storeFile(address) === undefined ? phrase('check_store_server') : phrase('make_store_folder')
}

function memory({ STORE, NODE_ENV }: Options['settings']): Finding[] {
  if (STORE !== 'memory:') return []
  const remedy = phrase('use_lasting_store')
  const seen = phrase('store_forgets')
  return [isProduction({ NODE_ENV }) ? warning('store kind', seen, remedy) : good('store kind', seen)]
}

async function exerciseStore(store: Store, now: () => number): Promise<Finding[]> {
  const name = `doctor:${randomBytes(16).toString('hex')}`
  const short = `${name}-short`
  const value = randomBytes(64)
  const entry = (ms: number) => ({ value, expiresAt: now() + ms, labels: [name] })
  const faults: Phrase[] = []
  try {
    const shortEntry = entry(SHORT_LIFETIME_MS)
    await store.create(short, shortEntry)
    const written = await timed(() => store.create(name, entry(LIFETIME_MS)))
    const read = await timed(() => store.read(name))
    if (!read.result || !value.equals(read.result.value)) faults.push(phrase('store_cannot_read'))
    const listed = await store.list({ label: name, limit: 10 })
    if (!listed.entries.some(({ key }) => key === name)) faults.push(phrase('store_cannot_list'))
    await pause(2 * SHORT_LIFETIME_MS)
    if (now() >= shortEntry.expiresAt && (await store.read(short))) faults.push(phrase('store_does_not_expire'))
    if (!(await store.remove(name))) faults.push(phrase('store_cannot_remove'))
    const [fault, ...others] = faults
    if (fault) {
      const seen = others.reduce((one, other) => phrase('two', { one, other }), fault)
      return [failure('store', seen, phrase('look_at_store_log'))]
    }
    return [good('store', phrase('store_works')), latency(written.ms, read.ms)]
  } finally {
    await Promise.allSettled([store.remove(name), store.remove(short)])
  }
}

/** How many pages of sessions are searched, if data keys of another secret exist at all. */
const MAX_PAGES = 100

/** A session under other data keys stays valid but is not found by its user: signing the user out misses it. */
async function probeKeys(store: Store, keys: NonNullable<Options['keys']>): Promise<Finding[]> {
  const state = await inspectDataKeys(store, keys)
  const what = 'store keys'
  if (state.kind === 'unknown') return []
  if (state.kind === 'closed')
    return (await needsDataKeys(store))
      ? [failure(what, phrase('store_keys_closed'), phrase('put_former_secret_behind'))]
      : [good(what, phrase('store_keys_not_needed'))]
  if (state.hasOthers && (await hasUnreadable(store, state.keys)))
    return [warning(what, phrase('store_keys_of_others'), phrase('put_former_secret_behind'))]
  return [good(what, phrase('store_keys_open'))]
}

async function hasUnreadable(store: Store, keys: readonly DataKeys[]): Promise<boolean> {
  let pages = 0
  for await (const entries of entryPages(store, SESSION_LABEL)) {
    if (entries.some(entry => !keys.some(each => summaryOf(entry, entry.key, each)))) return true
    pages++
    if (pages === MAX_PAGES) return false
  }
  return false
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const start = performance.now()
  const result = await work()
  return { result, ms: performance.now() - start }
}

function latency(writeMs: number, readMs: number): Finding {
  const seen = phrase('store_takes', { write: writeMs.toFixed(1), read: readMs.toFixed(1) })
  const remedy = phrase('bring_store_nearer')
  return Math.max(writeMs, readMs) > SLOW_MS ? warning('store latency', seen, remedy) : good('store latency', seen)
}

async function probeRedis(address: string): Promise<Finding[]> {
  try {
    const { readServerInfo } = await import('../stores/redis/server-info.ts')
    return serverFindings(await readServerInfo(address))
  } catch (error) {
    return [warning('redis', phrase('redis_says_nothing', { code: reasonOf(error) }), phrase('see_store_line'))]
  }
}

function serverFindings(info: RedisServerInfo): Finding[] {
  const { software, version, redisVersion, evictionPolicy, appendOnly, snapshots, lastWriteFailed } = info
  const seen = quoted(`${software} ${sanitize(version)}`)
  const [major = 0, minor = 0] = redisVersion.split('.').map(Number)
  const isOld = major < MIN_REDIS_VERSION[0] || (major === MIN_REDIS_VERSION[0] && minor < MIN_REDIS_VERSION[1])
  return [
    isOld
      ? failure('redis version', seen, phrase('use_newer_redis', { version: MIN_REDIS_VERSION.join('.') }))
      : good('redis version', seen),
    evictionFinding(evictionPolicy),
    persistenceFinding(appendOnly, snapshots, lastWriteFailed),
  ]
}

function evictionFinding(policy: string | undefined): Finding {
  const what = 'redis eviction policy'
  if (policy === undefined) return warning(what, phrase('does_not_say'), phrase('make_sure_noeviction'))
  if (policy === 'noeviction') return good(what, quoted(policy))
  return failure(what, phrase('evicts_sessions', { policy: sanitize(policy) }), phrase('set_noeviction'))
}

function persistenceFinding(appendOnly: boolean, snapshots: boolean | undefined, failed: boolean): Finding {
  const what = 'redis persistence'
  if (failed) return failure(what, phrase('last_write_failed'), phrase('look_at_redis_disk'))
  if (appendOnly) return good(what, quoted('appendonly'))
  const remedy = phrase('set_appendonly')
  if (snapshots) return warning(what, phrase('snapshots_only'), remedy)
  return warning(what, phrase(snapshots === undefined ? 'no_persistence_known' : 'no_persistence'), remedy)
}
