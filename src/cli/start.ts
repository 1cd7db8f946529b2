// `menshen`: loads the configuration, starts the development provider if needed, listens, and stops gracefully on a signal.

import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import { refuseListenerAsUpstream, refuseSharedPort } from '../config/conflicts.ts'
import { type ConfigurationSources, ENV_FILE, misspeltSettings } from '../config/load.ts'
import type { Environment } from '../config/settings.ts'
import type { Development } from '../dev-reload.ts'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { createEventLog } from '../log.ts'
import { type CoreOptions, createCore } from '../menshen.ts'
import { createEventCounter, type EventCounter } from '../observe/metrics.ts'
import { refuseToListen, startDevelopment } from '../options.ts'
import { disableIdleGc } from '../server/fast-path.ts'
import { listenAddress, serve } from '../server/serve.ts'
import { announce } from './announce.ts'
import { type InheritedSocket, refuseInheritedSocket } from './inherited-socket.ts'
import { reportConsole, reportWarnings } from './process-output.ts'
import { createReloader, type ReloadTarget, reloadProcess } from './reload.ts'
import { type ReloadOptions, type Snapshot, takeSnapshot } from './reload-changes.ts'
import { followPrimary, reloadWorkers, waitForSameConfig } from './reload-workers.ts'
import { type Closable, closeOnSignal, listenForSighup, type Reopenable } from './signals.ts'
import { isPretty, openLog } from './terminal.ts'
import { handleUncaughtErrors } from './uncaught-errors.ts'
import { localeLanguage } from './usage.ts'
import { createPrimaryChannel, createWorkerChannel } from './worker-messages.ts'
import { aggregateWorkerMetrics, gatherFromWorkers } from './worker-metrics.ts'
import { releaseSocket, SERVING, startWorkers } from './workers.ts'

/** How long requests in flight may take to finish after a stop signal. */
const CLOSE_DEADLINE_MS = 10_000

interface StartOptions {
  readonly sources: ConfigurationSources
  /** The socket of a service manager that listens in our place. */
  readonly inherited: InheritedSocket | undefined
  /** A supervisor started this process, which is the only one that serves. */
  readonly isOnlyWorker: boolean
  /** The process between npm and us, if npm started us. */
  readonly npmParent: number | undefined
  readonly now: () => number
}

export async function start({ sources: given, inherited, isOnlyWorker, npmParent, now }: StartOptions): Promise<void> {
  const sighup = listenForSighup()
  const primary = cluster.isWorker && !isOnlyWorker ? createPrimaryChannel() : undefined
  const read = () => takeSnapshot(given)
  const first = await (primary ? waitForSameConfig(primary, read) : read())
  const listens = inherited === undefined
  if (listens) refuseListenerAsUpstream(first.settings, first.config)
  if (listens && first.isDevelopment) refuseSharedPort(first.settings)
  const development = first.isDevelopment
    ? await startDevelopment(first.settings, first.config, first.settings.DEV_PROVIDER_PORT, now)
    : undefined
  const sources = { ...given, development: development?.settings }
  const snapshot = development ? await takeSnapshot(sources) : first
  const { settings, config, configFile, environment } = snapshot
  const reloadOptions = { sources, hadEnvFile: existsSync(ENV_FILE), listens }
  const worker = isOnlyWorker ? undefined : cluster.worker?.id
  const log = openLog(settings, environment, worker)
  const events = createEventLog(log, now)
  const countedEvents = createEventCounter()
  const report: Report = (code, fields) => {
    countedEvents.count(code)
    events.report(code, fields)
  }
  const failures = handleUncaughtErrors(report)
  reportWarnings(report)
  if (!isPretty(settings)) reportConsole(report)
  // Sending to a primary that is exiting fails, which must not end the worker.
  if (cluster.isWorker) process.on('error', () => {})
  const gathering = primary && { gatherMetrics: gatherFromWorkers(primary) }
  const core = { settings, config, log, now, worker, countedEvents, ...gathering }
  const startParts: StartParts = { snapshot, reloadOptions, inherited, report, countedEvents }
  const running =
    cluster.isPrimary && settings.WORKERS > 1
      ? await startAll({ ...development?.settings, ...inherited?.forWorkers }, startParts)
      : await startOne(core, startParts)
  const target = development ? withDevelopment(running.target, development) : running.target
  const reloader = primary ? followPrimary(primary, target, snapshot) : createReloader(target, snapshot, report)
  // Last, because it writes the counts of repeated events.
  const eventLog = { close: async () => events.close() }
  const parts = [reloader, running, ...(development ? [development] : []), eventLog]
  failures.watch(closeOnSignal(parts, report, npmParent), running.report)
  sighup.forwardTo({
    reopenFiles() {
      running.reopenFiles()
      reloader.reload('signal')
    },
  })
  if (cluster.isWorker) process.send?.(SERVING)
  if (!primary)
    announce(report, {
      settings,
      inherited,
      configFile,
      config,
      misspelt: misspeltSettings(environment, snapshot.variables),
      users: development?.users,
      isWelcomed: process.stdout.isTTY && isPretty(settings),
      language: localeLanguage(environment),
      now,
    })
}

/** The users of the development provider are part of the configuration. */
function withDevelopment(target: ReloadTarget, development: Pick<Development, 'reconfigure'>): ReloadTarget {
  return {
    ...target,
    async prepare() {
      const prepared = await target.prepare()
      return {
        ...prepared,
        async use(shouldReport) {
          await prepared.use(shouldReport)
          development.reconfigure(prepared.snapshot.config)
        },
      }
    },
  }
}

interface StartParts {
  readonly snapshot: Snapshot
  readonly reloadOptions: ReloadOptions
  readonly inherited: InheritedSocket | undefined
  readonly report: Report
  readonly countedEvents: EventCounter
}

interface RunningGateway extends Closable, Reopenable {
  /** Logs and counts an event. */
  readonly report: Report
  readonly target: ReloadTarget
}

async function startOne(options: CoreOptions, parts: StartParts): Promise<RunningGateway> {
  const { settings } = options
  const { snapshot, reloadOptions, inherited, report } = parts
  const menshen = await createCore(options).catch(error => {
    throw error instanceof MenshenError ? snapshot.locate(error) : error
  })
  const address = { ...listenAddress(settings, inherited?.fd), onCertificate: menshen.noteCertificate }
  const server = await serve(menshen, address, report).catch(async error => {
    await menshen.close()
    if (inherited) refuseInheritedSocket(error)
    return refuseToListen(error, { setting: 'PORT', port: settings.PORT, host: settings.HOST })
  })
  disableIdleGc()
  preload()
  return {
    target: reloadProcess(menshen, server, snapshot, reloadOptions),
    report: menshen.report,
    reopenFiles: () => menshen.reopenFiles(),
    async close() {
      // The development provider serves until the last request, and releasing would close all sockets of the process.
      if (!snapshot.isDevelopment) await releaseSocket()
      await server.close(CLOSE_DEADLINE_MS)
      await menshen.close()
    },
  }
}

/** The console and the doctor are loaded at their first use. Loading them now keeps the first request to them fast. */
function preload(): void {
  // A request to them loads them again and reports a failure.
  for (const loading of [import('../console/pages.ts'), import('../doctor/examine.ts')]) loading.catch(() => {})
}

async function startAll(env: Environment, parts: StartParts): Promise<RunningGateway> {
  const { snapshot, reloadOptions, inherited, report, countedEvents } = parts
  const channel = createWorkerChannel()
  // Before the first worker starts, because each asks for permission to serve.
  const target = reloadWorkers(channel, snapshot, reloadOptions)
  const isSocketInherited = inherited !== undefined
  aggregateWorkerMetrics(channel, countedEvents)
  const workers = await startWorkers(snapshot.settings.WORKERS, { env, isSocketInherited }, report)
  // The worker has logged the reason.
  return workers ? { ...workers, target, report } : process.exit(1)
}
