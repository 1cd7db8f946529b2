// The audit trail: takes every event whose row says so, and writes it to the store and to AUDIT_FILE without holding
// anybody up.
import { randomBytes } from 'node:crypto'
import type { Report } from '../../events.ts'
import type { DataKeyring } from '../../session/keys/data-keys.ts'
import type { DataKeys } from '../../session/session-record.ts'
import { network } from '../../settings/networks/networks.ts'
import type { Settings } from '../../settings/read.ts'
import type { Store } from '../../stores/store.ts'
import { createRepeats } from '../../util/repeats.ts'
import type { Observer } from '../observation.ts'
import { type AuditEvent, type AuditedCode, createSealer, isAudited, jsonLine, plainFacts } from './audit-event.ts'
import { createAuditFile } from './audit-file.ts'
import { type BatchWriter, createBatchWriter } from './batch-writer.ts'

export interface Audit extends Observer {
  onEvent: NonNullable<Observer['onEvent']>
  /** After its file was moved away. */
  reopenFile(): void
  /** Writes what is left, for so long at most. */
  close(patienceMs: number): Promise<void>
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

/** Usually it takes a few milliseconds. It gets them even if others have used up all patience, and never much more. */
const [SHORTEST_END_MS, LONGEST_END_MS] = [500, 3000]

export function createAudit(options: AuditOptions): Audit {
  const { settings, now, worker } = options
  const trail = settings.AUDIT_KEEP > 0 ? trailWriter(options) : undefined
  const file = settings.AUDIT_FILE === undefined ? undefined : fileWriter(settings.AUDIT_FILE, options.report)
  const own = randomBytes(6).toString('base64url')
  let count = 0
  const failures = createRepeats<Facts>(now, (facts, count) =>
    trail?.add(eventOf('sign_in_failed', { ...facts, count })),
  )

  function eventOf(code: AuditedCode, facts: Facts): AuditEvent {
    const all = worker === undefined ? facts : { ...facts, worker }
    return { id: `${own}${count++}`, time: now(), event: code, facts: plainFacts(all) }
  }

  return {
    onEvent(code, facts) {
      if (!isAudited(code) || isLoggedOnly(code, facts)) return
      const event = eventOf(code, facts)
      file?.add(event)
      if (code !== 'sign_in_failed' || failures.isNew(...repeatOf(facts))) trail?.add(event)
    },
    reopenFile: () => file?.reopen(),
    async close(patienceMs) {
      failures.close()
      const patience = Math.min(Math.max(patienceMs, SHORTEST_END_MS), LONGEST_END_MS)
      await Promise.all([trail?.close(patience), file?.close(patience)])
    },
  }
}

type Facts = Readonly<Record<string, unknown>>

/** Whoever sends thousands that are turned away would fill the trail; every SIGHUP for the files of the log would stand in it. */
function isLoggedOnly(code: AuditedCode, { again, changed }: Facts): boolean {
  return (code === 'rate_limited' && again === true) || (code === 'config_reloaded' && changed === 'nothing')
}

/** Anybody can make a sign-in fail, under any code that they make up: those of one network for one reason are repeats. */
function repeatOf({ address, reason, provider }: Facts): [key: string, facts: Facts] {
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
  // Opened at once: what is wrong with it should be said before it is needed.
  writer.wake()
  return {
    ...writer,
    reopen() {
      file.reopen()
      writer.wake()
    },
    async close(patienceMs: number) {
      await writer.close(patienceMs)
      await file.close()
    },
  }
}
