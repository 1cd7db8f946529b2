// The audit trail: takes every event whose row is marked for it, and writes it to the store and to AUDIT_FILE without delaying
// any request.

import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { network } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import { errorFields } from '../errors.ts'
import type { AuditedCode, Report } from '../events.ts'
import type { DataKeyring } from '../session/data-keys.ts'
import type { DataKeys } from '../session/record.ts'
import type { Store } from '../stores/store.ts'
import { withDeadline } from '../util/deadline.ts'
import { createRepeats } from '../util/repeats.ts'
import { type AuditEvent, createSealer, isAudited, jsonLine, plainFields } from './audit-event.ts'
import type { Observer } from './observed-request.ts'

export interface Audit extends Observer {
  onEvent: NonNullable<Observer['onEvent']>
  /** Call this after its file was moved away. */
  reopenFile(): void
  /** Writes what is left, for so long at most. */
  close(timeoutMs: number): Promise<void>
}

export interface AuditOptions {
  readonly settings: Pick<Settings, 'AUDIT_KEEP' | 'AUDIT_FILE'>
  readonly store: Pick<Store, 'trail'>
  readonly keyring: Pick<DataKeyring, 'current'>
  readonly now: () => number
  readonly report: Report
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

/** Closing usually takes a few milliseconds. It gets them even if others have used up the deadline, and never much more. */
const [MIN_END_MS, MAX_END_MS] = [500, 3000]

export function createAudit(options: AuditOptions): Audit {
  const { settings, now, worker } = options
  const trail = settings.AUDIT_KEEP > 0 ? trailWriter(options) : undefined
  const file = settings.AUDIT_FILE === undefined ? undefined : fileWriter(settings.AUDIT_FILE, options.report)
  const own = randomBytes(6).toString('base64url')
  let count = 0
  const failures = createRepeats<Fields>(now, (fields, count) =>
    trail?.add(eventOf('sign_in_failed', { ...fields, count })),
  )

  function eventOf(code: AuditedCode, fields: Fields): AuditEvent {
    const all = worker === undefined ? fields : { ...fields, worker }
    return { id: `${own}${count++}`, time: now(), event: code, fields: plainFields(all) }
  }

  return {
    onEvent(code, fields) {
      if (!isAudited(code) || isLoggedOnly(code, fields)) return
      const event = eventOf(code, fields)
      file?.add(event)
      if (code !== 'sign_in_failed' || failures.isNew(...repeatOf(fields))) trail?.add(event)
    },
    reopenFile: () => file?.reopen(),
    async close(timeoutMs) {
      failures.close()
      const boundedMs = Math.min(Math.max(timeoutMs, MIN_END_MS), MAX_END_MS)
      await Promise.all([trail?.close(boundedMs), file?.close(boundedMs)])
    },
  }
}

type Fields = Readonly<Record<string, unknown>>

/** A client that sends thousands of refused requests would fill the trail, and so would every SIGHUP for the files of the log. */
function isLoggedOnly(code: AuditedCode, { again, changed }: Fields): boolean {
  return (code === 'rate_limited' && again === true) || (code === 'config_reloaded' && changed === 'nothing')
}

/** Anyone can make a sign-in fail, with any code: failures of one network for one reason are repeats. */
function repeatOf({ address, reason, provider }: Fields): [key: string, fields: Fields] {
  return [`${network(String(address))} ${reason}`, { address, reason, provider }]
}

function trailWriter({ settings, store, keyring, report }: AuditOptions): BatchWriter<AuditEvent> {
  let current: { readonly keys: DataKeys; readonly seal: ReturnType<typeof createSealer> } | undefined
  return createBatchWriter<AuditEvent>({
    to: 'store',
    report,
    kindOf: ({ event }) => event,
    async write(events) {
      const keys = await keyring.current()
      if (current?.keys !== keys) current = { keys, seal: createSealer(keys) }
      await store.trail.append(events.map(current.seal), settings.AUDIT_KEEP)
      return events.length
    },
  })
}

function fileWriter(path: string, report: Report) {
  const file = createAuditFile(path)
  const write = (events: readonly AuditEvent[]) => file.write(events.map(jsonLine))
  const writer = createBatchWriter<AuditEvent>({ to: 'file', report, write, kindOf: ({ event }) => event })
  // Opened immediately, so that a problem with it is reported before it is needed.
  writer.wake()
  return {
    ...writer,
    reopen() {
      file.reopen()
      writer.wake()
    },
    async close(timeoutMs: number) {
      await writer.close(timeoutMs)
      await file.close()
    },
  }
}

// AUDIT_FILE: every event as a line of JSON. Several processes may write to the same file, so whole lines are written
// in one call, at the end that the file has then.

export interface AuditFile {
  /** Returns how many of the lines, from the first on, were written completely. */
  write(lines: readonly string[]): Promise<number>
  /** The next write goes to whatever has this name then. */
  reopen(): void
  close(): Promise<void>
}

/** Nothing waits for the reader of a pipe. */
const APPEND_FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
const OWNER_ONLY_MODE = 0o600
const NEWLINE = 0x0a

interface OpenedFile {
  readonly handle: FileHandle
  readonly isReadable: boolean
}

export function createAuditFile(path: string): AuditFile {
  let opened: OpenedFile | undefined
  let isStale = false
  /** Whether the last write ended in the middle of a line. */
  let isCut = false

  async function close(): Promise<void> {
    const old = opened
    opened = undefined
    // A failed write was reported already.
    await old?.handle.close().catch(() => {})
  }

  async function current(): Promise<OpenedFile> {
    if (isStale) await close()
    isStale = false
    opened ??= await openForAppending(path)
    return opened
  }

  return {
    close,

    reopen() {
      isStale = true
    },

    async write(lines) {
      try {
        const { handle, isReadable } = await current()
        if (lines.length === 0) return 0
        // A full disk cuts lines off, also those of other processes and of one that has died. Nothing is appended to a cut line. The
        // check takes 40 µs per batch.
        const isMidLine = isReadable ? await endsMidLine(handle) : isCut
        const bytes = Buffer.from((isMidLine ? '\n' : '') + lines.join(''))
        const { bytesWritten } = await handle.write(bytes)
        if (bytesWritten === bytes.length) {
          isCut = false
          return lines.length
        }
        const written = bytes.subarray(0, bytesWritten)
        if (bytesWritten > 0) isCut = written.at(-1) !== NEWLINE
        const ends = written.filter(byte => byte === NEWLINE).length
        return isMidLine && ends > 0 ? ends - 1 : ends
      } catch (error) {
        await close()
        throw error
      }
    },
  }
}

/** A file is also opened for reading if permissions allow it. A pipe is not: we would be its reader, and hide that it has none. */
async function openForAppending(path: string): Promise<OpenedFile> {
  const handle = await open(path, constants.O_WRONLY | APPEND_FLAGS, OWNER_ONLY_MODE)
  const isFile = await handle.stat().then(
    stats => stats.isFile(),
    () => false,
  )
  const readable = isFile && (await open(path, constants.O_RDWR | APPEND_FLAGS, OWNER_ONLY_MODE).catch(() => undefined))
  if (!readable) return { handle, isReadable: false }
  await handle.close()
  return { handle: readable, isReadable: true }
}

async function endsMidLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
  return bytesRead > 0 && buffer[0] !== NEWLINE
}

// Writes that no request waits for: one write is in flight, and everything that arrives during it goes into the next.
// Items that cannot be written are kept, up to a limit, and retried.

export interface BatchWriter<Item> {
  add(item: Item): void
  /** Calls `write` soon, even if there is nothing to write. */
  wake(): void
  /** Writes what is left, for so long at most. */
  close(timeoutMs: number): Promise<void>
}

interface BatchWriterOptions<Item> {
  /** Returns how many of them, from the first on, were written. */
  readonly write: (items: readonly Item[]) => Promise<number>
  /** The target, for the log. */
  readonly to: 'store' | 'file'
  readonly report: Report
  /** When there is no room, the kind with the most items makes some. */
  readonly kindOf: (item: Item) => string
}

const MAX_QUEUED = 10_000
/** A batch is sealed within a few milliseconds, so that requests do not wait for it. */
const MAX_BATCH_SIZE = 256
/** After a write, the embedded store checks every session again: a user who is refused all the time must not cause many writes. */
const BATCH_DELAY_MS = 50
const INITIAL_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 30_000
const REPORT_INTERVAL_MS = 60_000

export function createBatchWriter<Item>(options: BatchWriterOptions<Item>): BatchWriter<Item> {
  const { write, to, report, kindOf } = options
  const waiting: Item[] = []
  /** How many of each kind wait. */
  const counts = new Map<string, number>()
  const closing = new AbortController()
  let isRunning = false
  let isRequested = false
  let isAborted = false
  const failureReporter = createFailureReporter(to, report)
  let idle = Promise.resolve()

  function start(): void {
    if (isRunning || isAborted) return
    isRunning = true
    idle = run()
  }

  async function run(): Promise<void> {
    let failures = 0
    while ((waiting.length > 0 || isRequested) && !isAborted) {
      await waitForBatch()
      isRequested = false
      try {
        for (const item of waiting.splice(0, await write(waiting.slice(0, MAX_BATCH_SIZE)))) count(item, -1)
        failures = 0
      } catch (error) {
        isRequested = true
        failureReporter.failed(waiting.length, errorFields(error))
        await backOff(failures++)
      }
    }
    if (!isAborted) failureReporter.end()
    isRunning = false
  }

  async function waitForBatch(): Promise<void> {
    if (waiting.length >= MAX_BATCH_SIZE) await nextTurn()
    else await pauseUntilClosing(BATCH_DELAY_MS, true)
  }

  async function backOff(failures: number): Promise<void> {
    if (closing.signal.aborted) await pause(INITIAL_BACKOFF_MS)
    else await pauseUntilClosing(Math.min(INITIAL_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS), false)
  }

  /** `ref`: the process does not end during the pause. */
  async function pauseUntilClosing(ms: number, ref: boolean): Promise<void> {
    await pause(ms, undefined, { ref, signal: closing.signal }).catch(() => {})
  }

  function count(item: Item, by: 1 | -1): void {
    const kind = kindOf(item)
    counts.set(kind, (counts.get(kind) ?? 0) + by)
  }

  /** Drops the last event that is not being written, of the kind with the most. False if that is the newcomer's own kind. */
  function makeRoomFor(newcomer: Item): boolean {
    let [largest, most] = ['', (counts.get(kindOf(newcomer)) ?? 0) + 1]
    for (const [kind, count] of counts) if (count > most) [largest, most] = [kind, count]
    const at = largest === '' ? -1 : waiting.findLastIndex(item => kindOf(item) === largest)
    if (at < MAX_BATCH_SIZE) return false
    for (const item of waiting.splice(at, 1)) count(item, -1)
    return true
  }

  return {
    add(item) {
      const isFull = waiting.length >= MAX_QUEUED
      if (isFull) failureReporter.drop(waiting.length)
      if (!isFull || makeRoomFor(item)) {
        waiting.push(item)
        count(item, 1)
      }
      start()
    },

    wake() {
      isRequested = true
      start()
    },

    async close(timeoutMs) {
      closing.abort()
      await withDeadline(idle, timeoutMs, () => {})
      isAborted = true
      if (waiting.length > 0) failureReporter.giveUp(waiting.length)
    },
  }
}

/** Reports once in a while that writing fails, and then that it works again. */
function createFailureReporter(to: 'store' | 'file', report: Report) {
  let dropped = 0
  let reportedAt: number | undefined

  function reportFailure(count: number, why: object): void {
    const at = performance.now()
    if (reportedAt !== undefined && at - reportedAt < REPORT_INTERVAL_MS) return
    reportedAt = at
    report('audit_not_written', { to, count, dropped, ...why })
  }

  return {
    failed: reportFailure,
    drop(count: number): void {
      dropped++
      reportFailure(count, { reason: 'too_many' })
    },
    giveUp(count: number): void {
      report('audit_not_written', { to, count, dropped, reason: 'closing' })
    },
    end(): void {
      if (reportedAt !== undefined) report('audit_written_again', { to, dropped })
      reportedAt = undefined
      dropped = 0
    },
  }
}
