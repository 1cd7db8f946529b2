// A start: settings → development provider, if wanted → configuration → listen → end politely when asked to.

import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { refuseListenerAsUpstream } from '../config/conflicts.ts'
import type { Environment } from '../config/settings.ts'
import { findMisspelt } from '../config/suggestions.ts'
import type { Report } from '../events.ts'
import { createEventLog } from '../log.ts'
import { type CoreOptions, createCore } from '../menshen.ts'
import { type Development, refuseToListen, startDevelopment } from '../options.ts'
import { announce } from './announce.ts'
import { type InheritedSocket, refuseInheritedSocket } from './inherited-socket.ts'
import { ENV_FILE, type Rereading, readSources, type Sources } from './reload-sources.ts'
import { followFirst, readLikeOthers, reloadWorkers } from './reload-workers.ts'
import { createReloader, type Reloading, reloadOne } from './reloader.ts'
import { listenAddress, serve } from './serve.ts'
import { type Closable, closeWhenAsked, listenForHangUps, type Reopenable } from './signals.ts'
import { isForPeople, openLog } from './terminal.ts'
import { gatherFromWorkers } from './worker-metrics.ts'
import { startWorkers } from './workers.ts'

/** How long requests in flight may take to finish when the process is asked to end. */
const CLOSE_PATIENCE_MS = 10_000

interface StartOptions {
  /** The environment, and what stands in .env now. */
  readonly readEnvironment: () => Environment
  /** Of a service manager, if one listens in our place. */
  readonly inherited: InheritedSocket | undefined
  /** The process between npm and us, if npm started us. */
  readonly npmParent: number | undefined
  readonly now: () => number
}

export async function start({ readEnvironment, inherited, npmParent, now }: StartOptions): Promise<void> {
  endWithFirst()
  const hangUps = listenForHangUps()
  const read = () => readSources(readEnvironment)
  const given = await (cluster.isWorker ? readLikeOthers(read) : read())
  const listens = inherited === undefined
  if (listens) refuseListenerAsUpstream(given.settings, given.config)
  const development = given.wantsDevelopment
    ? await startDevelopment(given.settings, given.config, given.settings.DEV_PROVIDER_PORT, now)
    : undefined
  const sources = development ? await readSources(readEnvironment, development.settings) : given
  const { settings, config, configFile } = sources
  const environment = readEnvironment()
  const hadEnvFile = existsSync(ENV_FILE)
  const rereading = { readEnvironment, development: development?.settings, hadEnvFile, listens }
  const log = openLog(settings, environment)
  const events = createEventLog(log, now)
  const { report } = events
  // What a worker tells a first process that is just ending goes nowhere, and must not end the worker before its time.
  if (cluster.isWorker) process.on('error', () => {})
  const worker = cluster.worker?.id
  const core = { settings, config, log, now, worker, ...(cluster.isWorker && { gatherMetrics: gatherFromWorkers }) }
  const starting: Starting = { sources, rereading, inherited, report }
  const isFirstOfMany = cluster.isPrimary && settings.WORKERS > 1
  const running = isFirstOfMany
    ? await startAll({ ...development?.settings, ...inherited?.forWorkers }, starting)
    : await startOne(core, starting)
  const reloading = development ? reconfiguring(running.reloading, development) : running.reloading
  const reloader = cluster.isWorker ? followFirst(reloading, sources) : createReloader(reloading, sources, report)
  // Last of all: it writes the counts that are still owed.
  const ending = { close: async () => events.close() }
  closeWhenAsked([reloader, running, ...(development ? [development] : []), ending], report, npmParent)
  hangUps.hand({
    reopenFiles() {
      running.reopenFiles()
      reloader.reload('signal')
    },
  })
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

/** The development provider runs beside whatever is reloaded, and its users are part of the configuration. */
function reconfiguring(reloading: Reloading, development: Pick<Development, 'reconfigure'>): Reloading {
  return {
    ...reloading,
    async prepare() {
      const prepared = await reloading.prepare()
      return {
        ...prepared,
        async use(tells) {
          await prepared.use(tells)
          development.reconfigure(prepared.sources.config)
        },
      }
    },
  }
}

/**
 * A worker whose first process has died ends at once. Left to node:cluster it would call `process.exit`, which waits for
 * threads: one that is in the midst of a write to lmdb waits for us, for ever, and nobody else could write.
 */
function endWithFirst(): void {
  cluster.worker?.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
}

interface Starting {
  readonly sources: Sources
  readonly rereading: Rereading
  readonly inherited: InheritedSocket | undefined
  readonly report: Report
}

interface Running extends Closable, Reopenable {
  readonly reloading: Reloading
}

async function startOne(options: CoreOptions, starting: Starting): Promise<Running> {
  const { settings } = options
  const { sources, rereading, inherited, report } = starting
  const menshen = await createCore(options)
  const serving = await serve(menshen, listenAddress(settings, inherited?.fd), report).catch(async error => {
    await menshen.close()
    if (inherited) refuseInheritedSocket(error)
    return refuseToListen(error, { setting: 'PORT', port: settings.PORT, host: settings.HOST })
  })
  return {
    reloading: reloadOne(menshen, serving, sources, rereading),
    reopenFiles: () => menshen.reopenFiles(),
    async close() {
      await serving.close(CLOSE_PATIENCE_MS)
      await menshen.close()
    },
  }
}

async function startAll(env: Environment, { sources, rereading, inherited, report }: Starting): Promise<Running> {
  // Before there is one: each tells of itself as soon as it serves.
  const reloading = reloadWorkers(sources, rereading)
  const { WORKERS } = sources.settings
  const workers = await startWorkers(WORKERS, { env, isSocketInherited: inherited !== undefined }, report)
  // The worker has said why.
  return workers ? { ...workers, reloading } : process.exit(1)
}

// When V8 collects the whole heap: by what buffers hold, not by every byte that was ever allocated in them.

/** From here on V8 does it by itself, and no longer knows the flag. */
const BY_DEFAULT = [14, 8] as const

/**
 * Whatever passes through on its way from an application to a browser is a buffer that is dead a moment later, and whose
 * memory the next small collection gives back. Older versions of V8 collect the whole heap after every few of them all the
 * same, which was half of the work of a large answer. Best before anything else is loaded: V8 sets its limits by this.
 */
export function countHeldBuffers(version = process.versions.v8): void {
  if (isBefore(version, BY_DEFAULT)) setFlagsFromString('--external-memory-accounted-in-global-limit')
}

export function isBefore(version: string, [atMajor, atMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < atMajor || (major === atMajor && minor < atMinor)
}
