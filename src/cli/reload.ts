// Reloads, one after another: on a signal, and when a file has changed. A signal during a reload causes one more afterwards.

import { countRules, upstreamsOfHost } from '../config/file.ts'
import { ConfigurationError, ENV_FILE } from '../config/load.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Core, ReloadFields } from '../menshen.ts'
import type { RunningServer } from '../server/serve.ts'
import { type ReloadOptions, readChanges, type Snapshot, withConfigFile } from './reload-changes.ts'
import { watchFiles } from './watch-files.ts'

/** What is reloaded: one serving process, or all workers. */
export interface ReloadTarget {
  /** Throws a ConfigurationError if the files cannot be used. */
  prepare(): Promise<PreparedReload>
  /** Shows the refusal in the console. */
  noteRefused(refused: { file: string; detail: string }): void
  /** The workers can be the first to know that a reload is due. */
  whenDue?(reload: () => void): void
}

/** A reload that is checked, and not in use yet. */
export interface PreparedReload {
  readonly snapshot: Snapshot
  /** The names of what has changed. */
  readonly changed: readonly string[]
  /** Puts it in use, and reports it if `shouldReport` is true. */
  use(shouldReport: boolean): Promise<void>
}

/** `worker`: a worker that has just started read other files than those in use. */
type ReloadReason = 'signal' | 'file' | 'worker'

export interface Reloader {
  reload(reason: ReloadReason): void
  close(): Promise<void>
}

export function createReloader(target: ReloadTarget, { files }: Snapshot, report: Report): Reloader {
  const pending = new Set<ReloadReason>()
  let isRunning = false
  let wasRefused = false
  let inUse = files
  const watch = watchFiles(() => reload('file'))
  void watch.watch(files)
  target.whenDue?.(() => reload('worker'))

  async function run(reasons: ReadonlySet<ReloadReason>): Promise<void> {
    try {
      const { snapshot, changed, use } = await target.prepare()
      // After a refusal, files that are as they were before are reported too: the log and the console say that it is over.
      const isSilent = changed.length === 0 && !reasons.has('signal') && !wasRefused
      if (!isSilent || reasons.has('worker')) await use(!isSilent)
      wasRefused = false
      inUse = snapshot.files
      await watch.watch(inUse)
    } catch (error) {
      wasRefused = true
      const { file, files } = error instanceof ConfigurationError ? error : { file: ENV_FILE, files: [] }
      // Also the files that only the new configuration names, because the correction may be in one of them.
      await watch.watch([...new Set([...inUse, ...files])])
      report('config_refused', { file, ...errorFields(error) })
      target.noteRefused({ file, detail: error instanceof Error ? error.message : String(error) })
    }
  }

  async function runAll(): Promise<void> {
    isRunning = true
    while (pending.size > 0) {
      const reasons = new Set(pending)
      pending.clear()
      await run(reasons)
    }
    isRunning = false
  }

  function reload(reason: ReloadReason): void {
    pending.add(reason)
    if (!isRunning) void runAll()
  }

  return {
    reload,
    async close() {
      watch.stop()
      pending.clear()
    },
  }
}

/** Reloads a serving process. `started` is its first configuration. */
export function reloadProcess(
  menshen: Pick<Core, 'prepare' | 'noteRefused'>,
  server: Pick<RunningServer, 'renewCertificate'>,
  started: Snapshot,
  options: ReloadOptions,
): ReloadTarget {
  let inUse = started
  return {
    async prepare() {
      const { snapshot, changed } = await readChanges(inUse, options)
      const put = withConfigFile(snapshot, () => menshen.prepare(snapshot.settings, snapshot.config))
      return {
        snapshot,
        changed,
        async use(shouldReport) {
          inUse = snapshot
          server.renewCertificate()
          await put(shouldReport ? reloadFields(snapshot, changed) : undefined)
        },
      }
    },
    noteRefused: menshen.noteRefused,
  }
}

function reloadFields({ settings, config }: Snapshot, changed: readonly string[]): ReloadFields {
  const { upstreams = {}, hosts = {} } = config
  const ofHosts = Object.values(hosts).flatMap(host => Object.keys(upstreamsOfHost(host)))
  return {
    changed: changed.join(', ') || 'nothing',
    rules: countRules(config),
    upstreams: Object.keys({ ...(settings.UPSTREAM && { '/': '' }), ...upstreams }).length + ofHosts.length,
  }
}
