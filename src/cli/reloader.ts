// One reload after the other: on a signal, and when a file has changed. A signal during a reload means one more after it.

import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Core, ReloadFacts } from '../menshen.ts'
import {
  blamingWhole,
  ENV_FILE,
  type Rereading,
  readAgain,
  SourceProblem,
  type Sources,
  watchFiles,
} from './reload-sources.ts'
import type { RunningServer } from './serve.ts'

/** Made and checked, and not in use yet. */
export interface PreparedReload {
  readonly sources: Sources
  /** The names of what is not as it was. */
  readonly changed: readonly string[]
  /** Puts it in use, and tells of it if it `tells`. */
  use(tells: boolean): Promise<void>
}

export interface Reloading {
  /** Throws a SourceProblem if what stands in the files cannot be used. */
  prepare(): Promise<PreparedReload>
  /** For the console. */
  noteRefused(refused: { file: string; detail: string }): void
  /** Sometimes it is the first to know that a reload is due. */
  whenDue?(reload: () => void): void
}

/** A `worker` that has just started has read other files than those in use. */
type Occasion = 'signal' | 'file' | 'worker'

export interface Reloader {
  reload(occasion: Occasion): void
  close(): Promise<void>
}

export function createReloader(reloading: Reloading, { files }: Sources, report: Report): Reloader {
  const owed = new Set<Occasion>()
  let isRunning = false
  let inUse = files
  const watch = watchFiles(() => reload('file'))
  void watch.watch(files)
  reloading.whenDue?.(() => reload('worker'))

  async function run(occasions: ReadonlySet<Occasion>): Promise<void> {
    try {
      const { sources, changed, use } = await reloading.prepare()
      const isSilent = changed.length === 0 && !occasions.has('signal')
      if (!isSilent || occasions.has('worker')) await use(!isSilent)
      inUse = sources.files
      await watch.watch(inUse)
    } catch (error) {
      const { file, files } = error instanceof SourceProblem ? error : { file: ENV_FILE, files: [] }
      // Also what only the new files name: it may be mended there.
      await watch.watch([...new Set([...inUse, ...files])])
      report('config_refused', { file, ...errorFields(error) })
      reloading.noteRefused({ file, detail: error instanceof Error ? error.message : String(error) })
    }
  }

  async function runAll(): Promise<void> {
    isRunning = true
    while (owed.size > 0) {
      const occasions = new Set(owed)
      owed.clear()
      await run(occasions)
    }
    isRunning = false
  }

  function reload(occasion: Occasion): void {
    owed.add(occasion)
    if (!isRunning) void runAll()
  }

  return {
    reload,
    async close() {
      watch.stop()
      owed.clear()
    },
  }
}

// A reload in a process that serves.

/** `before` is what it has started with. */
export function reloadOne(
  menshen: Pick<Core, 'prepare' | 'noteRefused'>,
  serving: Pick<RunningServer, 'renewCertificate'>,
  before: Sources,
  rereading: Rereading,
): Reloading {
  let inUse = before
  return {
    async prepare() {
      const { sources, changed } = await readAgain(inUse, rereading)
      const put = blamingWhole(sources, () => menshen.prepare(sources.settings, sources.config))
      return {
        sources,
        changed,
        async use(tells) {
          inUse = sources
          serving.renewCertificate()
          await put(tells ? factsOfReload(sources, changed) : undefined)
        },
      }
    },
    noteRefused: menshen.noteRefused,
  }
}

function factsOfReload({ settings, config }: Sources, changed: readonly string[]): ReloadFacts {
  const { rules = [], upstreams = {} } = config
  return {
    changed: changed.join(', ') || 'nothing',
    rules: rules.length,
    upstreams: Object.keys({ ...(settings.UPSTREAM && { '/': '' }), ...upstreams }).length,
  }
}
