// A reload of all workers together: the primary checks the files, has every worker prepare, and only then tells them to change. A
// worker that does not answer is killed; its replacement starts with the new files.

import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import { checkConfiguration } from '../assembly/configuration.ts'
import { fingerprintOf } from '../config/fingerprint.ts'
import { ConfigurationError } from '../config/load.ts'
import type { PreparedReload, Reloader, ReloadTarget } from './reload.ts'
import {
  type ReloadOptions,
  readChanges,
  reloadError,
  type Snapshot,
  takeSnapshot,
  withConfigFile,
} from './reload-changes.ts'
import type { PrimaryChannel, WorkerChannel, WorkerMessage } from './worker-messages.ts'

const ANSWER_TIMEOUT_MS = 10_000
/** Files that are being written look different to each worker. */
const MAX_ATTEMPTS = 20
const RETRY_MS = 300
const POLL_MS = 20
const REPORT_INTERVAL_MS = 60_000

export function reloadWorkers(channel: WorkerChannel, started: Snapshot, options: ReloadOptions): ReloadTarget {
  let inUse = started
  let onDue = () => {}
  let reloads = 0
  /** Workers that may serve, because they have read the files in use. */
  const admitted = new Set<Worker>()
  /** Workers that have started, each with the fingerprint of what it uses. */
  const following = new Map<Worker, string>()
  let dueFor = ''

  /** A worker with other files asks again and again: a refusal is reported once a minute. */
  function requestReload(fingerprint: string): void {
    if (fingerprint === dueFor) return
    dueFor = fingerprint
    setTimeout(() => {
      dueFor = ''
    }, REPORT_INTERVAL_MS).unref()
    onDue()
  }

  async function mayStart(worker: Worker, fingerprint: string): Promise<boolean> {
    // As at a start, there is no other worker from which it could differ.
    if (admitted.size === 0) inUse = await takeSnapshot(options.sources)
    const isSame = fingerprint === fingerprintOf(inUse.parts)
    if (isSame) admitted.add(worker)
    return isSame
  }

  channel.handle(async (message, worker) => {
    if (message.type === 'may_start') {
      const isSame = await mayStart(worker, message.fingerprint).catch(() => false)
      if (!isSame) requestReload(message.fingerprint)
      return { type: 'start', isSame }
    }
    if (message.type === 'started') {
      following.set(worker, message.fingerprint)
      // The others have changed while this one started.
      if (message.fingerprint !== fingerprintOf(inUse.parts)) onDue()
    }
    return undefined
  })
  // A stopping worker may live on without a connection to us or to a client.
  cluster.on('disconnect', worker => {
    admitted.delete(worker)
    following.delete(worker)
  })

  const startingWorkers = () => [...admitted].filter(worker => !following.has(worker) && !worker.isDead())

  /** A worker that was just admitted will serve with the files that it has read, and cannot be asked yet. */
  async function waitForStarting(): Promise<void> {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS
    while (startingWorkers().length > 0 && performance.now() < deadline) await pause(POLL_MS)
    for (const worker of startingWorkers()) worker.process.kill('SIGKILL')
  }

  async function tryToPrepare(): Promise<PreparedReload | undefined> {
    await waitForStarting()
    const { snapshot, changed } = await readChanges(inUse, options)
    withConfigFile(snapshot, () => checkConfiguration(snapshot.settings, snapshot.config))
    const reload = ++reloads
    const asked = [...following.keys()]
    const answers = await requestAll(channel, asked, { type: 'prepare_reload', reload })
    for (const answer of answers) if (answer?.type === 'reload_refused') throw reloadError(answer.file, answer.detail)
    const isAnyNew = startingWorkers().length > 0 || [...following.keys()].some(worker => !asked.includes(worker))
    const prepared = asked.filter((_, n) => answers[n] !== undefined)
    const fingerprint = fingerprintOf(snapshot.parts)
    const isSame = answers.every(
      answer => !answer || (answer.type === 'reload_prepared' && answer.fingerprint === fingerprint),
    )
    if (prepared.length === 0 || isAnyNew || !isSame) return undefined
    return {
      snapshot,
      changed,
      async use(shouldReport) {
        inUse = snapshot
        // If a worker has died since then, its replacement starts with these files.
        const [reporter, ...others] = prepared.filter(worker => !worker.isDead())
        await requestAll(channel, others, { type: 'use_reload', reload, shouldReport: false })
        // The reporter is last: when it reports the reload, all workers have changed.
        await requestAll(channel, reporter ? [reporter] : [], { type: 'use_reload', reload, shouldReport })
        for (const worker of prepared) if (following.has(worker)) following.set(worker, fingerprint)
      },
    }
  }

  async function prepare(): Promise<PreparedReload> {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      const prepared = await tryToPrepare()
      if (prepared) return prepared
      await pause(RETRY_MS)
    }
    throw reloadError(inUse.configFile ?? '', 'The files changed again and again while they were read.')
  }

  /**
   * A worker that read the files just before they changed cannot follow the others while the files are refused. Its replacement
   * waits until they can be used.
   */
  function endOutdated(): void {
    const current = fingerprintOf(inUse.parts)
    for (const [worker, fingerprint] of following) if (fingerprint !== current) worker.process.kill('SIGTERM')
  }

  return {
    async prepare() {
      try {
        return await prepare()
      } catch (error) {
        endOutdated()
        throw error
      }
    },
    whenDue(reload) {
      onDue = reload
    },
    noteRefused(refused) {
      for (const worker of following.keys()) channel.send(worker, { type: 'reload_refused', ...refused })
    },
  }
}

/** The answers, in the order of the workers; `undefined` for a worker that does not answer, which is killed. */
function requestAll(channel: WorkerChannel, workers: readonly Worker[], message: WorkerMessage) {
  return Promise.all(
    workers.map(async worker => {
      const answer = await channel.ask(worker, message, ANSWER_TIMEOUT_MS)
      if (!answer && worker.isConnected()) worker.process.kill('SIGKILL')
      return answer
    }),
  )
}

// A reload in a worker: it prepares and changes only when the primary asks for it.

const ADMISSION_RETRY_MS = 1000

/**
 * A worker that replaces another one reads the current files, which the other workers may have refused. It serves only with the
 * files that they use.
 */
export async function waitForSameConfig(channel: PrimaryChannel, read: () => Promise<Snapshot>): Promise<Snapshot> {
  let snapshot: Snapshot | undefined = await read()
  while (!(snapshot && (await hasSameConfig(channel, snapshot)))) {
    await pause(ADMISSION_RETRY_MS)
    // The files may be half written, so the next try reads them again.
    snapshot = await read().catch(() => undefined)
  }
  return snapshot
}

async function hasSameConfig(channel: PrimaryChannel, { parts }: Snapshot): Promise<boolean> {
  const answer = await channel.ask({ type: 'may_start', fingerprint: fingerprintOf(parts) }, ANSWER_TIMEOUT_MS)
  return answer?.type === 'start' && answer.isSame
}

/** Reloads only when the primary asks for it. */
export function followPrimary(channel: PrimaryChannel, target: ReloadTarget, { parts }: Snapshot): Reloader {
  let prepared: { readonly reload: number; readonly use: PreparedReload['use'] } | undefined

  async function prepare(reload: number): Promise<WorkerMessage> {
    prepared = undefined
    const { snapshot, use } = await target.prepare()
    prepared = { reload, use }
    return { type: 'reload_prepared', fingerprint: fingerprintOf(snapshot.parts) }
  }

  async function use(reload: number, shouldReport: boolean): Promise<WorkerMessage | undefined> {
    if (prepared?.reload !== reload) return undefined
    await prepared.use(shouldReport)
    return { type: 'reload_used' }
  }

  channel.handle(async message => {
    try {
      if (message.type === 'prepare_reload') return await prepare(message.reload)
      if (message.type === 'use_reload') return await use(message.reload, message.shouldReport)
      if (message.type === 'reload_refused') target.noteRefused(message)
      return undefined
    } catch (error) {
      const file = error instanceof ConfigurationError ? error.file : ''
      return { type: 'reload_refused', file, detail: error instanceof Error ? error.message : String(error) }
    }
  })
  channel.send({ type: 'started', fingerprint: fingerprintOf(parts) })
  return { reload() {}, async close() {} }
}
