// Puts the parts together: settings in, the whole sign-in as a request listener out.
import type { RequestListener } from 'node:http'
import { checkWhole } from './create/configuration.ts'
import { configure } from './create/configured-parts.ts'
import { openLastingParts } from './create/lasting-parts.ts'
import { changeSecrets, prepareReload } from './create/reload.ts'
import type { Embedded } from './gateway/embedded/embedded.ts'
import type { UpgradeListener } from './gateway/forward/upgrade.ts'
import type { Hooks } from './gateway/hooks.ts'
import { createPatience } from './gateway/patience.ts'
import type { Log } from './log.ts'
import type { Gathering } from './observe/metrics/gathering.ts'
import type { Config, Role } from './settings/config/config-file.ts'
import type { Settings } from './settings/read.ts'

/** `R` are the roles, and `F` the further fields of the user info, that the options name. */
export interface Menshen<R extends Role = Role, F extends string = string> extends Embedded<R, F> {
  /** For a server of node:http: our own routes, the rules, and the application behind. */
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** From now on every answer closes its connection, so that the next request goes elsewhere. */
  prepareToClose(): void
  /** Sockets and event streams: they would never end by themselves, and open anew elsewhere. */
  endStreams(): void
  /** After the file of AUDIT_FILE was moved away. */
  reopenFiles(): void
  /**
   * Ends the streams, finishes the sign-ins and refreshes that are under way, and closes the store. Whatever is not done
   * after this long (10 s) is left behind. A second call is the same as the first.
   */
  close(patienceMs?: number): Promise<void>
}

/** What the command can do besides. */
export interface Core extends Menshen {
  /**
   * Checks other settings and another configuration as a whole, or throws. What it returns puts them in use: for requests that
   * come from then on. It tells of it with `facts`, if there are any.
   */
  prepare(settings: Settings, config: Config): (facts: ReloadFacts | undefined) => Promise<void>
  /** For the console: the files are not what runs. */
  noteRefused(refused: { file: string; detail: string }): void
}

export interface ReloadFacts {
  /** The names of settings and of parts of the configuration. */
  readonly changed: string
  readonly rules: number
  readonly upstreams: number
}

export interface CoreOptions {
  readonly settings: Settings
  readonly config: Config
  readonly log: Log
  readonly now: () => number
  /** How metrics are put together with those of other processes. */
  readonly gatherMetrics?: Gathering
  /** Functions of the program around us. */
  readonly hooks?: Hooks
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

const CLOSE_PATIENCE_MS = 10_000

/** What the command and the library start alike, from settings and a configuration that were checked. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const configuration = checkWhole(options.settings, options.config)
  const patience = createPatience()
  await using opened = new AsyncDisposableStack()
  const lasting = await openLastingParts(opened, patience, configuration, options)
  let current = configure(lasting, configuration)
  lasting.use(current)
  opened.defer(() => patience.wait(current.ownRoutes.settle()))
  const everything = opened.move()
  const endStreams = () => {
    lasting.liveStreams.end()
    lasting.upstreamPool.endStreams()
  }
  let closed: Promise<void> | undefined
  return {
    ...current.embedded,
    listener: (request, response) => current.listener(request, response),
    upgradeListener: (request, socket, head) => current.upgradeListener(request, socket, head),
    prepareToClose() {
      lasting.lifecycle.closing = true
    },
    endStreams,
    prepare(settings, config) {
      const next = prepareReload(lasting, current, checkWhole(settings, config))
      return async facts => {
        const before = current
        current = next
        lasting.use(next)
        lasting.reloads.reloadedAt = options.now()
        lasting.reloads.refused = undefined
        if (facts) lasting.report('config_reloaded', facts)
        await changeSecrets(lasting, before.keys, next.keys)
      }
    },
    noteRefused(refused) {
      lasting.reloads.refused = { ...refused, at: options.now() }
    },
    reopenFiles: () => lasting.audit.reopenFile(),
    close(patienceMs = CLOSE_PATIENCE_MS) {
      if (closed) return closed
      patience.start(patienceMs)
      lasting.lifecycle.closing = true
      endStreams()
      closed = everything.disposeAsync().finally(() => patience.stop())
      return closed
    },
  }
}
