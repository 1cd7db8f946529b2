// Assembles a running instance from settings and a configuration; reloads and closes it.

import type { RequestListener } from 'node:http'
import { checkConfiguration, withoutProviderCalls } from './assembly/configuration.ts'
import { buildConfigured } from './assembly/configured.ts'
import { openProcessParts, type ProcessOptions } from './assembly/process-parts.ts'
import { changeSecrets, prepareReload } from './assembly/reload.ts'
import { createShutdownDeadline } from './assembly/shutdown-deadline.ts'
import type { Config } from './config/file.ts'
import type { Role } from './config/role-names.ts'
import type { Settings } from './config/settings.ts'
import type { Report } from './events.ts'
import type { ClientErrorListener } from './gateway/bad-requests.ts'
import type { Embedded } from './gateway/embedded.ts'
import { type UpgradeListener, wantsSocket } from './gateway/upgrade.ts'
import type { ServedApplication } from './server/serve.ts'
import type { Sessions } from './session/sessions.ts'

/** `R` are the roles, and `F` the further fields of the user info, that the options name. */
export interface Menshen<R extends Role = Role, F extends string = string> extends Embedded<R, F> {
  /** For a server of node:http: our own routes, the rules, and the application behind. */
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** For the server's `clientError` event: a page for requests whose headers are too large. */
  readonly clientErrorListener: ClientErrorListener
  /** From now on, every answer closes its connection, so that the next request goes to another process. */
  prepareToClose(): void
  /** Ends sockets and event streams, which would not end on their own. Clients open them again, at another process. */
  endStreams(): void
  /** After the file of AUDIT_FILE was moved away. */
  reopenFiles(): void
  /**
   * Ends the streams, finishes the sign-ins and refreshes that are in progress, and closes the store. Anything unfinished after
   * this long (10 s) is abandoned. A second call returns the promise of the first.
   */
  close(timeoutMs?: number): Promise<void>
}

/** What the command can do in addition. */
export interface Core extends Menshen, ServedApplication {
  /**
   * Checks other settings and another configuration as a whole, or throws. The returned function puts them in use for requests
   * that come from then on, and reports `fields`, if there are any.
   */
  prepare(settings: Settings, config: Config): (fields: ReloadFields | undefined) => Promise<void>
  /** For the console: the files differ from what runs. */
  noteRefused(refused: { file: string; detail: string }): void
  /** For the metrics: when the certificate of the server expires, in milliseconds since the epoch. */
  noteCertificate(expiresAt: number): void
  /** Logs and counts an event. */
  readonly report: Report
  /** For tests of applications: sessions without a sign-in at a provider. */
  readonly sessions: Pick<Sessions, 'open' | 'close'>
}

export interface ReloadFields {
  /** The names of settings and of parts of the configuration. */
  readonly changed: string
  readonly rules: number
  readonly upstreams: number
}

export interface CoreOptions extends ProcessOptions {
  readonly settings: Settings
  readonly config: Config
  /** No provider is called, whatever the configuration says. */
  readonly isOffline?: boolean
}

const CLOSE_WITHIN_MS = 10_000

/** Starts an instance, for the command and for the library, from settings and a configuration that were checked. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const checked = checkConfiguration(options.settings, options.config)
  const configuration = options.isOffline ? withoutProviderCalls(checked) : checked
  const deadline = createShutdownDeadline()
  await using opened = new AsyncDisposableStack()
  const parts = await openProcessParts(opened, deadline, configuration, options)
  let current = buildConfigured(parts, configuration)
  parts.use(current)
  opened.defer(() => deadline.wait(current.ownRoutes.settle()))
  const everything = opened.move()
  const endStreams = () => {
    parts.liveStreams.end()
    parts.upstreamPool.endStreams()
  }
  let closed: Promise<void> | undefined
  return {
    ...current.embedded,
    listener: (request, response) => current.listener(request, response),
    upgradeListener: (request, socket, head) => current.upgradeListener(request, socket, head),
    clientErrorListener: (error, socket) => current.clientErrorListener(error, socket),
    shouldUpgrade: wantsSocket,
    prepareToClose() {
      parts.lifecycle.closing = true
    },
    endStreams,
    prepare(settings, config) {
      const next = prepareReload(parts, current, checkConfiguration(settings, config))
      return async fields => {
        const before = current
        current = next
        parts.use(next)
        parts.reloads.reloadedAt = options.now()
        parts.reloads.refused = undefined
        if (fields) parts.observe.report('config_reloaded', fields)
        await changeSecrets(parts, before.keys, next.keys)
      }
    },
    report: parts.observe.report,
    sessions: parts.sessions,
    noteRefused(refused) {
      parts.reloads.refused = { ...refused, at: options.now() }
    },
    noteCertificate(expiresAt) {
      parts.certificate.expiresAt = expiresAt
    },
    reopenFiles: () => parts.audit.reopenFile(),
    close(timeoutMs = CLOSE_WITHIN_MS) {
      if (closed) return closed
      deadline.start(timeoutMs)
      parts.lifecycle.closing = true
      endStreams()
      closed = everything.disposeAsync().finally(() => deadline.stop())
      return closed
    },
  }
}
