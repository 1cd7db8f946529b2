// The files of the embedded store. They are inspected before they are opened: lmdb-js often ends the process when it cannot
// open a file.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { access, constants, mkdir, mkdtemp, open as openFile, rm, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { open } from 'lmdb'
import { MenshenError, sentence, setting } from '../../errors.ts'
import { type Phrase, phrase } from '../../phrases.ts'
import { withDeadline } from '../../util/deadline.ts'

const OPTIONS = {
  noSubdir: false,
  // Each process has a few. LMDB's default of 126 is less than WORKERS may need, and then the last processes cannot read.
  maxReaders: 2048,
  permissionsMode: 0o600,
  // A write is reported when it is on the disk, and is not readable before.
  overlappingSync: false,
  // Batches of a whole event turn have a separate promise, whose rejection cannot be caught.
  eventTurnBatching: false,
  // The number of changes that start a write before the event turn is over. With the default of 5 a single session starts one,
  // and sessions that arrive together are flushed one by one.
  txnStartThreshold: 2000,
  // The number of free pages that LMDB keeps in memory. Each write searches them and writes the changed ones back: with the
  // default of 50,000, which large writes leave behind, a single write takes ten times as long until the next start.
  maxFreeSpaceToLoad: 2000,
  maxFreeSpaceToRetain: 3000,
}
/** The magic number of LMDB and its version, where a data file has them. */
const SIGNATURE = { at: 24, bytes: Buffer.from('dec0efbe02000000', 'hex') }
/** More bytes than new files need. */
const NEW_FILES_BYTES = 256 * 1024

export type LmdbFiles = Awaited<ReturnType<typeof openFiles>>

export type OnBroken = (reason: unknown) => void

/** `onBroken` is called once if this process can neither read nor write any more, until it is started again. */
export async function openFiles(directory: string, onBroken: OnBroken = () => {}) {
  try {
    await makeFolder(resolve(directory))
    await inspect(directory)
    const root = open({ path: directory, ...OPTIONS })
    const records = root.openDB<Buffer, string>('records', { encoding: 'binary', useVersions: true })
    const tryToRead = () => {
      records.resetReadTxn()
      records.doesExist('')
    }
    return {
      directory,
      root,
      ...createWrites({ directory, tryToRead, onBroken, closeRoot: () => root.close() }),
      records,
      byLabel: root.openDB<Buffer, string>('byLabel', { encoding: 'binary' }),
      generations: root.openDB<Buffer, Buffer>('generations', {
        encoding: 'binary',
        keyEncoding: 'binary',
        useVersions: true,
      }),
      byExpiry: root.openDB<Buffer, [expiresAt: number, key: string]>('byExpiry', { encoding: 'binary' }),
      bySince: root.openDB<Buffer, [since: number, key: string]>('bySince', { encoding: 'binary' }),
      trail: root.openDB<Buffer, [kind: string, number: number]>('trail', { encoding: 'binary' }),
      trailKinds: root.openDB<Buffer, string>('trailKinds', { encoding: 'binary' }),
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = sentence`The store cannot be opened in ${directory} (${reason}): make it a folder that this user can write to, on a disk with room, or name another one in ${setting('STORE')}.`
    const said = phrase('store_cannot_be_opened', { directory, reason })
    throw new MenshenError('cannot_start', [{ setting: 'STORE', message }], cause, said)
  }
}

/** Copies a store that others may be writing to, as it is at one moment, into an empty folder. */
export async function copyLmdbStore(directory: string, target: string): Promise<void> {
  try {
    await inspect(directory)
    const root = open({ path: directory, ...OPTIONS })
    try {
      await root.backup(target, true)
    } finally {
      await root.close()
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new MenshenError(
      'cannot_start',
      `The store in ${directory} cannot be copied to ${target} (${reason}).`,
      cause,
    )
  }
}

/**
 * Why the folder of a new store cannot be created; `undefined` if it can. It is tried with a folder that is removed at once:
 * permissions do not tell the truth for every user and place, such as root in /proc.
 */
export async function folderProblem(directory: string): Promise<Phrase | undefined> {
  if (!existsSync(directory)) return folderProblem(dirname(directory))
  if (!(await stat(directory)).isDirectory()) return phrase('not_a_folder', { directory })
  try {
    await rmdir(await mkdtemp(join(directory, '.menshen-')))
    return undefined
  } catch (error) {
    return phrase('nothing_can_be_made', { directory, code: String(Object(error).code) })
  }
}

/** Whether opening it would create its files. */
export function isEmptyStore(directory: string): boolean {
  return !existsSync(join(directory, 'data.mdb'))
}

/** One folder at a time: where nothing can be created, as in /proc, Node's `recursive` never ends. */
async function makeFolder(directory: string): Promise<void> {
  if (existsSync(directory)) {
    if (!(await stat(directory)).isDirectory()) throw new Error(`${directory} is not a folder`)
    return
  }
  await makeFolder(dirname(directory))
  await mkdir(directory, { mode: 0o700 }).catch(cause => {
    // Another process was faster.
    if (!existsSync(directory)) throw cause
  })
}

/** Throws where opening would fail: after that, lmdb-js often crashes. */
async function inspect(directory: string): Promise<void> {
  const data = join(directory, 'data.mdb')
  const lock = join(directory, 'lock.mdb')
  const present = [data, lock].filter(existsSync)
  if (present.length < 2) await proveRoom(directory, NEW_FILES_BYTES)
  for (const file of present) {
    // Without opening it: closing lock.mdb would drop the locks that this process may hold on it.
    await access(file, constants.R_OK | constants.W_OK)
    if (!(await stat(file)).isFile()) throw new Error(`${file} is not a file`)
  }
  if (present.includes(data) && !(await isNewOrOurs(data))) throw new Error(`${data} is not the data of a store`)
}

/** Random bytes: some file systems compress others, and pages of sessions cannot be compressed. */
async function proveRoom(directory: string, bytes: number): Promise<void> {
  const content = await promisify(randomBytes)(bytes)
  const probe = join(directory, `probe-${process.pid}`)
  await using file = await openFile(probe, 'w', 0o600)
  // Before it is written: a process that is killed leaves nothing behind.
  await rm(probe)
  await file.writeFile(content)
  await file.sync()
}

async function isNewOrOurs(data: string): Promise<boolean> {
  await using file = await openFile(data)
  const { at, bytes } = SIGNATURE
  const { bytesRead, buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, at)
  return bytesRead === 0 ? (await file.stat()).size === 0 : buffer.equals(bytes)
}

// A disk that fails or hangs is an error of the store, and never ends the process.

/** A process that was stopped during a write blocks the others, too. */
const DISK_DEADLINE_MS = 10_000

export function unavailable(directory: string, problem: string, cause: unknown): MenshenError {
  return new MenshenError('store_unavailable', `The store in ${directory} ${problem}.`, cause)
}

// lmdb-js writes the reason of a failed write into a buffer that can be too short for it (`last_error` in its mdb.c), and a process
// whose memory that damages ends soon. Many writes to a disk that is full ended each process within seconds. So after a failed
// write a file of our own is tried before the next one: in an outage lmdb-js seldom fails.

/** A commit of 100 sign-ins that arrive together writes as much, if there are 50,000 sessions. */
const COMMIT_BYTES = 4 * 1024 * 1024
/** How long a probe that failed counts. */
const PROBE_EVERY_MS = 250
/** Whatever the probe says, a write is tried so often: the store may have free pages in its file, and its folder may be read-only. */
const TRY_EVERY_MS = 10_000

/** Begins with a write that failed, and lasts until one succeeds. */
interface Outage {
  readonly reason: unknown
  /** When lmdb-js was asked last, and whether the probe had succeeded before. */
  readonly triedAt: number
  readonly isProven: boolean
  /** How many tries failed although the probe had succeeded, as where the size of files is limited. */
  readonly misses: number
}

interface WriteOptions {
  readonly directory: string
  readonly tryToRead: () => void
  readonly onBroken: OnBroken
  readonly closeRoot: () => Promise<void>
}

function createWrites({ directory, tryToRead, onBroken, closeRoot }: WriteOptions) {
  let outage: Outage | undefined
  let isClosed = false
  let isBroken = false
  let probe: Promise<void> | undefined

  /** One for all that wait, however long the disk hangs. */
  function prove(): Promise<void> {
    if (!probe) {
      probe = proveCommit(directory)
      const forget = () => {
        probe = undefined
      }
      probe.then(forget, () => setTimeout(forget, PROBE_EVERY_MS).unref())
    }
    return withDeadline(probe, DISK_DEADLINE_MS)
  }

  /**
   * After a commit that failed in its last step, LMDB refuses everything in this process (MDB_PANIC). lmdb-js does not tell the
   * writers, who would wait for ever, and tells readers with different codes. A full disk alone keeps nobody from reading.
   */
  function noteIfBroken(reason: unknown): void {
    if (isBroken || isClosed) return
    try {
      tryToRead()
    } catch {
      isBroken = true
      onBroken(reason)
    }
  }

  /** Resolves when lmdb-js may be asked, with the outage in which it is. */
  async function permission(last: Outage): Promise<Outage | undefined> {
    const waitedMs = performance.now() - last.triedAt
    if (waitedMs < pauseAfter(last.misses)) throw last.reason
    const isProven = waitedMs < TRY_EVERY_MS
    if (isProven) await prove()
    if (outage === last) outage = { ...last, triedAt: performance.now(), isProven }
    return outage
  }

  return {
    /** Resolves when the work is on the disk. */
    async write<Result>(begin: () => Promise<Result>): Promise<Result> {
      if (isBroken) throw new Error('The store is broken until this process is started again.')
      const before = outage && (await permission(outage))
      // lmdb-js would end the process.
      if (isClosed) throw new Error('The store is closed.')
      try {
        const result = await onDisk(begin())
        outage = undefined
        return result
      } catch (reason) {
        // Writes that fail together count once.
        if (outage === before) {
          const misses = before ? before.misses + Number(before.isProven) : 0
          outage = { reason, triedAt: performance.now(), isProven: false, misses }
        }
        noteIfBroken(reason)
        throw reason
      }
    },

    close(): Promise<void> {
      isClosed = true
      return onDisk(closeRoot())
    },
  }
}

/** The free room is asked for first, so that the probe does not fill a disk that others write to at the same time. */
async function proveCommit(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free < 2 * COMMIT_BYTES) throw new Error(`The disk has only ${free} bytes free.`)
  await proveRoom(directory, COMMIT_BYTES)
}

function pauseAfter(misses: number): number {
  return misses === 0 ? 0 : Math.min(PROBE_EVERY_MS * 2 ** misses, TRY_EVERY_MS)
}

function onDisk<Result>(work: Promise<Result>): Promise<Result> {
  return withDeadline(work.catch(throwReason), DISK_DEADLINE_MS)
}

/** lmdb-js has the reason of a failed write in a second promise, which ends the process if it is not handled. */
async function throwReason(failure: { readonly commitError?: Promise<never> }): Promise<never> {
  await failure.commitError
  throw failure
}
