// The metrics of all workers, whichever worker is asked: it asks the primary, which asks every worker and sums up. The last numbers of
// a worker that hangs or has exited are still included, because a sum that goes down looks like a restart to Prometheus.

import cluster from 'node:cluster'
import { countersOf, type GatherMetrics, gatherAlone, mergeSnapshots, writeMetrics } from '../observe/exposition.ts'
import type { EventCounter } from '../observe/metrics.ts'
import type { MetricsSnapshot } from '../observe/series.ts'
import type { PrimaryChannel, WorkerChannel } from './worker-messages.ts'

/** For a worker that hangs. */
const WORKER_DEADLINE_MS = 1000
/** For a primary that hangs. */
const PRIMARY_DEADLINE_MS = 2000

/** In a worker: answers the primary, and asks it for the sums. Without an answer the worker reports only its own numbers. */
export function gatherFromWorkers(channel: PrimaryChannel): GatherMetrics {
  return read => {
    channel.handle(async message =>
      message.type === 'read_metrics' ? { type: 'metrics_read', snapshot: await read() } : undefined,
    )
    return async () => {
      const answer = await channel.ask({ type: 'write_metrics' }, PRIMARY_DEADLINE_MS)
      return answer?.type === 'metrics_written' ? answer.text : gatherAlone(read)()
    }
  }
}

/** In the primary, which also counts the events that it reports itself. */
export function aggregateWorkerMetrics(channel: WorkerChannel, countedEvents: EventCounter): void {
  const latest = new Map<number, MetricsSnapshot>()
  let exited: MetricsSnapshot = {}

  /** Returns the ids of the workers that answered in time. */
  async function readAll(): Promise<ReadonlySet<number>> {
    const answered = new Set<number>()
    const workers = Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)
    await Promise.all(
      workers.map(async worker => {
        const answer = await channel.ask(worker, { type: 'read_metrics' }, WORKER_DEADLINE_MS)
        if (answer?.type !== 'metrics_read') return
        latest.set(worker.id, answer.snapshot)
        answered.add(worker.id)
      }),
    )
    return answered
  }

  async function writeAll(): Promise<string> {
    const answered = await readAll()
    const known = [...latest].map(([id, snapshot]) => (answered.has(id) ? snapshot : countersOf(snapshot)))
    return writeMetrics(mergeSnapshots([...known, exited, { menshen_events_total: countedEvents.read() }]))
  }

  channel.handle(async message =>
    message.type === 'write_metrics' ? { type: 'metrics_written', text: await writeAll() } : undefined,
  )
  cluster.on('exit', ({ id }) => {
    const last = latest.get(id)
    if (!last) return
    exited = mergeSnapshots([exited, countersOf(last)])
    latest.delete(id)
  })
}
