// A start: settings → development provider, if wanted → configuration → listen → end politely when asked to.
import cluster from 'node:cluster'
import { type CoreOptions, createCore } from '../create.ts'
import type { Report } from '../events.ts'
import { startDevelopment } from '../library/development.ts'
import { refuseToListen } from '../library/listen-failure.ts'
import { createEventLog } from '../log.ts'
import { findConfigFile, loadConfigFile } from '../settings/config/load-config.ts'
import { findMisspelt } from '../settings/misspelt.ts'
import { type Environment, readSettings, type Settings, wantsDevProvider } from '../settings/read.ts'
import { announce } from './announce.ts'
import { type Closing, closeWhenAsked } from './close-when-asked.ts'
import { listenForHangUps, type Reopening } from './hang-ups.ts'
import { listenAddress, serve } from './serve.ts'
import { type InheritedSocket, refuseInheritedSocket } from './socket-activation/inherited-socket.ts'
import { isForPeople, openLog } from './terminal/open-log.ts'
import { gatherFromWorkers } from './worker-metrics.ts'
import { startWorkers } from './workers.ts'

/** How long requests in flight may take to finish when the process is asked to end. */
const CLOSE_PATIENCE_MS = 10_000

interface StartOptions {
  readonly environment: Environment
  /** Of a service manager, if one listens in our place. */
  readonly inherited: InheritedSocket | undefined
  /** The process between npm and us, if npm started us. */
  readonly npmParent: number | undefined
  readonly now: () => number
}

export async function start({ environment, inherited, npmParent, now }: StartOptions): Promise<void> {
  const hangUps = listenForHangUps()
  const given = readSettings(environment)
  const configFile = findConfigFile(process.cwd(), given.CONFIG)
  const config = await loadConfigFile(configFile)
  const isConfigured = config.provider !== undefined || config.providers !== undefined
  const development =
    !isConfigured && wantsDevProvider(given) ? await startDevelopment(given, given.DEV_PROVIDER_PORT, now) : undefined
  const settings = development ? readSettings({ ...environment, ...development.settings }) : given
  const log = openLog(settings, environment)
  const events = createEventLog(log, now)
  const { report } = events
  // What a worker tells a first process that is just ending goes nowhere, and must not end the worker before its time.
  if (cluster.isWorker) process.on('error', () => {})
  const isFirstOfMany = cluster.isPrimary && settings.WORKERS > 1
  const running = isFirstOfMany
    ? await startAll(settings, { ...development?.settings, ...inherited?.forWorkers }, inherited, report)
    : await startOne(
        {
          settings,
          config,
          log,
          now,
          worker: cluster.worker?.id,
          ...(cluster.isWorker && { gatherMetrics: gatherFromWorkers }),
        },
        inherited,
        report,
      )
  // Last of all: it writes the counts that are still owed.
  const ending = { close: async () => events.close() }
  closeWhenAsked([running, ...(development ? [development] : []), ending], report, npmParent)
  hangUps.hand(running)
  if (cluster.isPrimary)
    announce(report, {
      settings,
      inherited,
      configFile,
      config,
      misspelt: findMisspelt(environment),
      users: development?.users,
      isWelcomed: process.stdout.isTTY && isForPeople(settings),
    })
}

async function startOne(
  options: CoreOptions,
  inherited: InheritedSocket | undefined,
  report: Report,
): Promise<Closing & Reopening> {
  const { settings } = options
  const menshen = await createCore(options)
  const serving = await serve(menshen, listenAddress(settings, inherited?.fd), report).catch(async error => {
    await menshen.close()
    if (inherited) refuseInheritedSocket(error)
    return refuseToListen(error, { setting: 'PORT', port: settings.PORT, host: settings.HOST })
  })
  return {
    reopenFiles: () => menshen.reopenFiles(),
    async close() {
      await serving.close(CLOSE_PATIENCE_MS)
      await menshen.close()
    },
  }
}

async function startAll(
  { WORKERS }: Settings,
  env: Environment,
  inherited: InheritedSocket | undefined,
  report: Report,
): Promise<Closing & Reopening> {
  const workers = await startWorkers(WORKERS, { env, isSocketInherited: inherited !== undefined }, report)
  // The worker has said why.
  return workers ?? process.exit(1)
}
